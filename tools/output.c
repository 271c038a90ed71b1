/* output.c - result files: all of them or none. Each is written whole under another name in its
 * folder and renamed at the end, so that an error leaves what was there. Something that is no plain
 * file (/dev/stdout, a pipe) is written at the end. */
#include "tools/tool.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Output {
	const char *path;
	char *beside; /* NULL: no plain file, written by output_commit */
	const Node *tensor;
	const void *data;
} Output;

static Output *outputs;
static int noutput;

static void write_array(const char *path, const Node *t, const void *data)
{
	int64_t shape[RICCI_MAX_RANK];
	Error e = {0};
	for (int d = 0; d < tensor_rank(t); d++)
		shape[d] = tensor_extent(t, d);
	check(npy_write(path, t->type, tensor_rank(t), shape, data, &e), &e);
}

void output_write(const char *path, const Node *t, const void *data)
{
	struct stat st;
	bool plain = stat(path, &st) || S_ISREG(st.st_mode);
	Text beside = {0};
	if (plain) {
		text_add(&beside, "%s.%ld.part", path, (long)getpid());
		if (beside.failed)
			take(NULL);
	}
	outputs = take(mem_realloc(outputs, (size_t)(noutput + 1) * sizeof *outputs));
	outputs[noutput++] = (Output){path, beside.s, t, data};
	if (plain)
		write_array(beside.s, t, data);
}

void output_commit(void)
{
	for (int k = 0; k < noutput; k++) {
		Output *o = &outputs[k];
		if (!o->beside)
			write_array(o->path, o->tensor, o->data);
		else if (rename(o->beside, o->path))
			die(STATUS_WRONG, "%s: %s", o->path, strerror(errno));
		mem_free(o->beside);
		o->beside = NULL;
	}
	mem_free(outputs);
	outputs = NULL;
	noutput = 0;
}

void output_forget(void)
{
	for (int k = 0; k < noutput; k++)
		if (outputs[k].beside)
			unlink(outputs[k].beside);
	noutput = 0;
}
