/* test_module.c - nets as modules: a trained net from its checkpoint and from its session gives the
 * session's bits, in a process without a compiler, a cache and a second thread too; files that are
 * damaged, cut, made for others, or not to be trusted say so; memory that ends. */
#include "nn/serve/module.h"
#include "tests/memory_check.h"
#include "tests/nn/folder.h"
#include "tests/tools/trained_net.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const int32_t ids[BATCH] = {0, 2, 4, 6};
static const char *self;

static void module_feed(ricci_module *m, const Trained *n)
{
	CHECK_INT(ricci_module_feed(m, "x", n->in, sizeof n->in), 0);
	CHECK_INT(ricci_module_feed(m, "int", ids, sizeof ids), 0);
}

static void ports(const ricci_module *m, const char *output)
{
	const ricci_port *x = ricci_module_input(m, 0), *i = ricci_module_input(m, 1);
	const ricci_port *y = ricci_module_output(m, 0);
	CHECK(x && i && !ricci_module_input(m, 2) && !ricci_module_input(m, -1));
	CHECK(y && !ricci_module_output(m, 1) && !ricci_module_input(NULL, 0));
	if (!x || !i || !y)
		return;
	const ricci_port *wide = strcmp(x->name, "x") ? i : x;
	CHECK_STR(wide->name, "x");
	CHECK(wide->type == RICCI_F32 && wide->rank == 3 && wide->shape[0] == STEPS &&
	      wide->shape[1] == BATCH && wide->shape[2] == WIDTH);
	CHECK_STR(y->name, output);
	CHECK_INT(y->bytes, BATCH * CLASSES * 4);
}

/* Two of one file at once; the session's step has the same kernels, or others of the same sums. */
static void module_values(const Trained *n, const char *path, const char *output)
{
	ricci_module *m[2];
	float got[BATCH * CLASSES];
	for (int k = 0; k < 2; k++) {
		m[k] = ricci_module_load(path, k + 1);
		CHECK_REPORT(m[k] != NULL, "%s", ricci_error_message());
	}
	if (!m[0] || !m[1])
		return;
	ports(m[0], output);
	for (int k = 0; k < 4; k++) {
		if (k < 2)
			module_feed(m[k], n);
		memset(got, 0, sizeof got);
		CHECK_INT(ricci_module_run(m[k % 2]), 0);
		CHECK_INT(ricci_module_fetch(m[k % 2], output, got, sizeof got), 0);
		for (int i = 0; i < COUNT(got); i++)
			CHECK_NEAR(got[i], n->want[i], 1e-6);
	}
	ricci_module_free(m[1]);
	ricci_module_free(m[0]);
}

static void misuse(const Trained *n, const char *path)
{
	ricci_module *m = ricci_module_load(path, 1);
	float got[BATCH * CLASSES];
	int32_t far[BATCH] = {0, 7, 0, 0};
	CHECK(m != NULL);
	CHECK_INT(ricci_module_run(m), RICCI_EINVAL);
	CHECK(strstr(ricci_error_message(), "has not been fed"));
	CHECK_INT(ricci_module_feed(m, "z", n->in, sizeof n->in), RICCI_EINVAL);
	CHECK(strstr(ricci_error_message(), "the net has no input 'z'; it has: "));
	CHECK_INT(ricci_module_feed(m, "x", n->in, 4), RICCI_EINVAL);
	CHECK_INT(ricci_module_feed(m, "int", far, sizeof far), RICCI_EVALUE);
	CHECK_STR(ricci_error_message(),
		  "'int': element 1 is 7, but the graph indexes with it and needs 0..6");
	CHECK_INT(ricci_module_fetch(m, "x", got, sizeof got), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(),
		  "ricci_module_fetch: the net has no output 'x'; it has: y");
	CHECK_INT(ricci_module_run(NULL), RICCI_EINVAL);
	CHECK_INT(ricci_module_feed(NULL, "x", n->in, 4), RICCI_EINVAL);
	CHECK_INT(ricci_module_fetch(NULL, "y", got, 4), RICCI_EINVAL);
	CHECK(!ricci_module_load(NULL, 1));
	CHECK(!ricci_module_load(path, -1));
	CHECK_INT(ricci_export_module(NULL, 1, NULL, NULL, 1, path), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "ricci_export_module needs a session");
	CHECK_INT(ricci_export_module_checkpoint(path, 1, NULL), RICCI_EINVAL);
	CHECK_INT(ricci_export_module_checkpoint(path, 1, "m"), RICCI_EFORMAT);
	ricci_module_free(m);
	ricci_module_free(NULL);
}

/* ---- files that are not what they should be */

typedef struct FileBytes {
	char *s;
	size_t n;
} FileBytes;

static FileBytes file_load(const char *path)
{
	FILE *f = fopen(path, "rb");
	FileBytes b = {malloc(1 << 22), 0};
	CHECK(f != NULL);
	if (f) {
		b.n = fread(b.s, 1, 1 << 22, f);
		fclose(f);
	}
	return b;
}

static void file_save(const char *path, const char *s, size_t n)
{
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0 && write(fd, s, n) == (ssize_t)n);
	close(fd);
}

/* What loading says, without the path. */
static const char *refused(const char *path)
{
	ricci_module *m = ricci_module_load(path, 1);
	CHECK(m == NULL);
	ricci_module_free(m);
	const char *said = ricci_error_message(), *at = strstr(said, path);
	return at == said ? said + strlen(path) + 1 : said;
}

static void damaged(const char *path)
{
	FileBytes b = file_load(path);
	const char *bad = in_folder("bad");
	const ModuleHead *h = (const void *)b.s;
	const struct {
		size_t at;
		const char *says;
	} flip[] = {
		{0, "is no module of Ricci"},
		{offsetof(ModuleHead, order), "was made on a machine with another order of bytes"},
		{offsetof(ModuleHead, version),
		 "is damaged: its first bytes don't have their checksum"},
		{offsetof(ModuleHead, weights_at),
		 "is damaged: its first bytes don't have their checksum"},
		{sizeof *h + 3, "is damaged: its kernels don't have their checksum"},
		{h->kernels_at + 200, "is damaged: its kernels don't have their checksum"},
		{h->weights_at - 1, "is damaged: its kernels don't have their checksum"},
		{h->weights_at, "is damaged: its weights don't have their checksum"},
		{b.n - 1, "is damaged: its weights don't have their checksum"},
	};
	char text[100];
	for (int k = 0; k < COUNT(flip); k++) {
		b.s[flip[k].at] ^= 16;
		file_save(bad, b.s, b.n);
		b.s[flip[k].at] ^= 16;
		CHECK_STR(refused(bad), flip[k].says);
	}
	for (int k = 1; k < 40; k += 3) {
		size_t n = k == 1 ? b.n - 1 : b.n * (size_t)k / 40;
		file_save(bad, b.s, n);
		snprintf(text, sizeof text, "has %zu bytes and should have %zu", n, b.n);
		CHECK_STR(refused(bad), text);
	}
	file_save(bad, b.s, sizeof *h - 1);
	CHECK_STR(refused(bad), "is no module of Ricci: it is too short");
	file_save(bad, b.s, 0);
	CHECK_STR(refused(bad), "is no module of Ricci: it is too short");
	free(b.s);
}

/* With sums that are right, as another library would have made it. */
static void others(const char *path)
{
	FileBytes b = file_load(path);
	ModuleHead *h = (void *)b.s, old = *h;
	const char *bad = in_folder("bad");
	for (int k = 0; k < 6; k++) {
		*h = old;
		if (k == 0)
			h->format++;
		else if (k == 1)
			strcpy(h->version, "0.0.9 1");
		else if (k == 2)
			h->isa |= 1u << 30;
		else if (k == 3)
			h->weights_at += 1;
		else if (k == 4)
			h->kernels += 1u << 29;
		else
			h->text = 0;
		h->head_sum = serve_checksum(h, offsetof(ModuleHead, head_sum));
		file_save(bad, b.s, b.n);
		const char *said = refused(bad);
		static const char *const part[] = {
			"has format 2, this library reads 1: export it again",
			"was made by Ricci 0.0.9 1, this is ",
			"was made for a processor with ",
			"is damaged: its parts don't fit together",
			"is damaged: its parts don't fit together",
			"is damaged: its parts don't fit together"};
		CHECK_REPORT(!strncmp(said, part[k], strlen(part[k])), "%s", said);
	}
	free(b.s);
}

/* The kernels' tables, with sums that are right: nothing is read outside of them. */
static void tables(const char *path)
{
	FileBytes b = file_load(path);
	ModuleHead *h = (void *)b.s;
	const char *bad = in_folder("bad");
	uint64_t state = 5;
	int nrefused = 0;
	for (int k = 0; k < 60; k++) {
		size_t at = h->kernels_at + (random_below(&state, 600) & ~(size_t)3);
		uint32_t old, new = (uint32_t)random_below(&state, UINT32_MAX);
		memcpy(&old, b.s + at, 4);
		memcpy(b.s + at, k % 2 ? &new : &(uint32_t){UINT32_MAX}, 4);
		h->body_sum = serve_checksum(b.s + sizeof *h, h->weights_at - sizeof *h);
		h->head_sum = serve_checksum(h, offsetof(ModuleHead, head_sum));
		file_save(bad, b.s, b.n);
		memcpy(b.s + at, &old, 4);
		ricci_module *m = ricci_module_load(bad, 1);
		nrefused += !m;
		ricci_module_free(m);
	}
	CHECK_REPORT(nrefused > 20, "%d of 60 refused", nrefused);
	free(b.s);
}

static void untrusted(const char *path)
{
	char text[500];
	CHECK_INT(chmod(path, 0662), 0);
	snprintf(text, sizeof text,
		 "others may write to %s (mode 662), and code is loaded from it: chmod go-w", path);
	CHECK_STR(refused(path), text);
	CHECK_INT(chmod(path, 0600), 0);
	CHECK_STR(refused(folder), "is not a regular file");
	const char *fifo = in_folder("fifo"), *link = in_folder("link");
	CHECK_INT(mkfifo(fifo, 0600), 0);
	CHECK_STR(refused(fifo), "is not a regular file");
	CHECK_INT(symlink(path, link), 0);
	ricci_module *m = ricci_module_load(link, 1);
	CHECK(m != NULL);
	ricci_module_free(m);
	snprintf(text, sizeof text, "cannot open %s: No such file or directory", "/nowhere/m");
	CHECK_STR(refused("/nowhere/m"), text);
}

/* ---- without a compiler */

static int tasks(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/task");
	for (struct dirent *e; d && (e = readdir(d));)
		n += *e->d_name != '.';
	if (d)
		closedir(d);
	return n;
}

/* In a process of its own: 0, or what is wrong. */
static int serve(const char *path)
{
	float x[STEPS * BATCH * WIDTH], y[BATCH * CLASSES];
	for (int k = 0; k < COUNT(x); k++)
		x[k] = (float)sin(1.3 * k);
	ricci_module *m = ricci_module_load(path, 1);
	if (!m || ricci_module_feed(m, "x", x, sizeof x) ||
	    ricci_module_feed(m, "int", ids, sizeof ids) || ricci_module_run(m) ||
	    ricci_module_fetch(m, "y", y, sizeof y))
		return fprintf(stderr, "%s\n", ricci_error_message()), 1;
	int n = tasks();
	ricci_module_free(m);
	return n > 1 ? 2 : fwrite(y, sizeof y, 1, stdout) != 1;
}

static void bare(const Trained *n, const char *path)
{
	char command[600];
	float got[BATCH * CLASSES];
	snprintf(command, sizeof command,
		 "PATH=/nowhere RICCI_CC=/nowhere RICCI_CACHE=off %s serve %s", self, path);
	FILE *f = popen(command, "r");
	CHECK(f && fread(got, sizeof got, 1, f) == 1);
	if (f)
		CHECK_INT(pclose(f), 0);
	for (int i = 0; i < COUNT(got); i++)
		CHECK_NEAR(got[i], n->want[i], 1e-6);
}

/* ---- memory */

static char loaded[400];

static int load_once(void)
{
	ricci_module *m = ricci_module_load(loaded, 1);
	if (!m)
		return strstr(ricci_error_message(), "memory") ? RICCI_ENOMEM : RICCI_EINTERNAL;
	ricci_module_free(m);
	return 0;
}

static void checksums(void)
{
	char text[101];
	for (int k = 0; k < 101; k++)
		text[k] = (char)k;
	/* The reference implementation's (xxHash 0.8.4). */
	CHECK(serve_checksum("", 0) == 0xef46db3751d8e999u);
	CHECK(serve_checksum("abc", 3) == 0x44bc2cf5ad770999u);
	CHECK(serve_checksum(text, 101) == 0xe99038495f85381eu);
}

int main(int argc, char **argv)
{
	Trained n = {0};
	const char *name = "y";
	if (argc == 3)
		return serve(argv[2]);
	self = argv[0];
	checksums();
	CHECK(folder_make("module"));
	trained_net(&n);
	const char *checkpoint = in_folder("n.h5");
	snprintf(loaded, sizeof loaded, "%s", in_folder("a.module"));
	CHECK_INT(ricci_save(n.train, n.y, checkpoint, NULL, 0), 0);
	CHECK_REPORT(!ricci_export_module(n.infer, 1, &n.y, &name, 1, loaded), "%s",
		     ricci_error_message());
	module_values(&n, loaded, "y");
	const char *other = in_folder("b.module");
	CHECK_REPORT(!ricci_export_module_checkpoint(checkpoint, 1, other), "%s",
		     ricci_error_message());
	module_values(&n, other, "output");
	bare(&n, loaded);
	misuse(&n, loaded);
	damaged(loaded);
	others(loaded);
	tables(loaded);
	untrusted(loaded);
	trained_free(&n); /* its tuner's thread allocates, too */
	check_memory(load_once);
	folder_remove();
	return check_done();
}
