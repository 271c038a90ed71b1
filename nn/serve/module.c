/* module.c - ricci_module_*: a file of module_write.c loaded and run. Input: the file, the inputs'
 * data. Output: the outputs'. Invariants: what is used is what was checked: head, text and kernels
 * are checked in memory of our own; weights are pages of the file, which only its owner and root can
 * change. No compiler is started, and no thread that searches. */
#include "nn/nn.h"
#include "nn/serve/module.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct ricci_module {
	unsigned generation; /* of forks: the process that loaded it */
	ReadNet net;
	KernelPack *pack;
	ricci_session *session;
	char *weights; /* pages of the file */
	size_t bytes;
	int nport[2];
	ricci_port *port[2]; /* inputs, outputs */
	ricci_tensor **input;
	Arena memory;
};

/* ---- the file ---- */
typedef struct Opened {
	const char *path;
	int fd;
	uint64_t size;
	ModuleHead head;
	char *body; /* what is between head and weights, aligned as kernels need it */
	Error *err;
} Opened;

static int wrong(const Opened *o, const char *what)
{
	return error_set(o->err, RICCI_EFORMAT, "%s %s", o->path, what);
}

static int read_at(const Opened *o, void *to, size_t n, off_t at)
{
	for (char *p = to; n > 0;) {
		ssize_t k = pread(o->fd, p, n, at);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return error_set(o->err, RICCI_EIO, "cannot read %s: %s", o->path,
					 strerror(errno));
		if (k == 0)
			return wrong(o, "is cut short");
		p += k;
		n -= (size_t)k;
		at += k;
	}
	return 0;
}

static int head_fits(const Opened *o)
{
	const ModuleHead *h = &o->head;
	const Target *host = target_host();

	if (memcmp(h->version, code_version(), strlen(code_version()) + 1) != 0)
		return error_set(o->err, RICCI_EUNSUPPORTED,
				 "%s was made by Ricci %.63s, this is %s: export it again", o->path,
				 h->version, code_version());
	if (h->isa & ~host->isa)
		return error_set(o->err, RICCI_EUNSUPPORTED,
				 "%s was made for a processor with %.127s, this one has %s: export "
				 "it here, or with RICCI_ISA=avx2 there",
				 o->path, h->isa_names, host->key);
	return 0;
}

/* The head says what the file is, then whether it is whole, then whether it can run here. */
static int head_check(const Opened *o)
{
	const ModuleHead *h = &o->head;

	if (memcmp(h->magic, MODULE_MAGIC, sizeof MODULE_MAGIC) != 0)
		return wrong(o, "is no module of Ricci");
	if (h->order != MODULE_ORDER)
		return wrong(o, "was made on a machine with another order of bytes");
	if (h->format != MODULE_FORMAT)
		return error_set(o->err, RICCI_EUNSUPPORTED,
				 "%s has format %u, this library reads %d: export it again",
				 o->path, (unsigned)h->format, MODULE_FORMAT);
	if (serve_checksum(h, offsetof(ModuleHead, head_sum)) != h->head_sum)
		return wrong(o, "is damaged: its first bytes don't have their checksum");
	if (h->version[sizeof h->version - 1] || h->isa_names[sizeof h->isa_names - 1] ||
	    h->text < 1 || h->text > MODULE_MOST || h->kernels > MODULE_MOST ||
	    h->kernels_at < sizeof *h + h->text || h->kernels_at % PACK_ALIGN ||
	    h->weights_at % MODULE_PAGE || h->weights_at > 3ull * MODULE_MOST ||
	    h->weights_at < h->kernels_at || h->weights_at - h->kernels_at < h->kernels ||
	    h->weights > SIZE_MAX / 4)
		return wrong(o, "is damaged: its parts don't fit together");
	int code = head_fits(o);
	if (!code && o->size != h->weights_at + h->weights)
		code = error_set(o->err, RICCI_EFORMAT, "%s has %llu bytes and should have %llu",
				 o->path, (unsigned long long)o->size,
				 (unsigned long long)(h->weights_at + h->weights));
	return code;
}

static int file_open(Opened *o)
{
	struct stat st;

	o->fd = open(o->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (o->fd < 0)
		return error_set(o->err, RICCI_EIO, "cannot open %s: %s", o->path, strerror(errno));
	int code = file_trust(o->fd, o->path, o->err);
	if (!code && fstat(o->fd, &st))
		code = error_set(o->err, RICCI_EIO, "cannot read %s: %s", o->path, strerror(errno));
	if (code)
		return code;
	o->size = (uint64_t)st.st_size;
	if (o->size < sizeof o->head)
		return wrong(o, "is no module of Ricci: it is too short");
	code = read_at(o, &o->head, sizeof o->head, 0);
	return code ? code : head_check(o);
}

static int body_read(Opened *o)
{
	size_t n = o->head.weights_at - sizeof o->head;

	/* kernels_at is counted from the head, so the body begins where the head ends. */
	o->body = mem_alloc(n + sizeof o->head);
	if (!o->body)
		return error_set(o->err, RICCI_ENOMEM, "out of memory for %s", o->path);
	int code = read_at(o, o->body + sizeof o->head, n, sizeof o->head);
	if (!code && serve_checksum(o->body + sizeof o->head, n) != o->head.body_sum)
		code = wrong(o, "is damaged: its kernels don't have their checksum");
	if (!code && o->body[sizeof o->head + o->head.text - 1])
		code = wrong(o, "is damaged: its text has no end");
	return code;
}

static int weights_map(const Opened *o, ricci_module *m)
{
	const ModuleHead *h = &o->head;
	int how = MAP_PRIVATE;

#ifdef MAP_POPULATE
	how |= MAP_POPULATE; /* the checksum reads all of it */
#endif
	if (h->weights != pack_places(m->net.g, NULL))
		return wrong(o, "is damaged: the weights are not those of its net");
	if (!h->weights)
		return 0;
	void *at = mmap(NULL, h->weights, PROT_READ, how, o->fd, (off_t)h->weights_at);
	if (at == MAP_FAILED)
		return error_set(o->err, errno == ENOMEM ? RICCI_ENOMEM : RICCI_EIO,
				 "cannot map the weights of %s: %s", o->path, strerror(errno));
	m->weights = at;
	m->bytes = h->weights;
	return serve_checksum(at, h->weights) == h->weights_sum
		       ? 0
		       : wrong(o, "is damaged: its weights don't have their checksum");
}

/* ---- inputs and outputs ---- */
static bool port_fill(Arena *a, ricci_port *p, const char *name, const ricci_tensor *t)
{
	int64_t *shape = arena_alloc(a, (size_t)(ricci_rank(t) + 1) * sizeof *shape);

	for (int d = 0; shape && d < ricci_rank(t); d++)
		shape[d] = ricci_extent(t, d);
	*p = (ricci_port){name, ricci_dtype(t), ricci_rank(t), shape, ricci_bytes(t)};
	return shape != NULL;
}

static int ports_list(ricci_module *m, Error *err)
{
	Arena *a = &m->memory;
	const ricci_graph *g = m->net.g;
	size_t room = (size_t)g->ntensor + 1;
	bool good =
		(m->port[0] = arena_alloc(a, room * sizeof *m->port[0])) &&
		(m->input = arena_alloc(a, room * sizeof *m->input)) &&
		(m->port[1] = arena_alloc(a, (size_t)(m->net.noutput + 1) * sizeof *m->port[1]));

	for (ricci_tensor *t = g->first; t && good; t = t->next)
		if (t->role == ROLE_INPUT) {
			good = port_fill(a, &m->port[0][m->nport[0]], t->name, t);
			m->input[m->nport[0]++] = t;
		}
	for (int k = 0; k < m->net.noutput && good; k++, m->nport[1]++)
		good = port_fill(a, &m->port[1][k], m->net.name[k], m->net.output[k]);
	return good ? 0 : error_set(err, RICCI_ENOMEM, "out of memory for a module");
}

/* The input (0) or output (1) of this name; -1 with an error that lists those there are. */
static int port_find(const ricci_module *m, int out, const char *call, const char *name, Error *err)
{
	Text all = {0};

	for (int k = 0; name && k < m->nport[out]; k++)
		if (!strcmp(m->port[out][k].name, name))
			return k;
	for (int k = 0; k < m->nport[out]; k++)
		text_add(&all, "%s%s", k ? ", " : "", m->port[out][k].name);
	error_set(err, RICCI_EINVAL, "%s: the net has no %s '%s'; it has: %s", call,
		  out ? "output" : "input", name ? name : "NULL", all.s ? all.s : "none");
	text_free(&all);
	return -1;
}

/* ---- the module ---- */
static int module_load(Opened *o, ricci_module *m, int threads)
{
	Error why = {0};
	int code = file_open(o);

	if (!code)
		code = body_read(o);
	if (!code)
		code = net_read(&m->net, o->body + sizeof o->head, o->err);
	if (!code && !(m->pack = pack_read(o->body + o->head.kernels_at, o->head.kernels, o->err)))
		code = o->err->code;
	if (!code)
		code = weights_map(o, m);
	if (!code)
		code = ports_list(m, o->err);
	if (!code && !(m->session = session_packed(m->net.g, m->pack, threads, m->weights,
						   m->net.noutput, m->net.output, &why)))
		code = error_set(o->err, why.code, "%s: %s", o->path, why.text);
	return code;
}

ricci_module *ricci_module_load(const char *path, int threads)
{
	Error *err = ERROR_TELL;
	Opened o = {.path = path, .fd = -1, .err = err};
	ricci_module *m = path ? mem_zalloc(sizeof *m) : NULL;

	if (!m) {
		error_set(err, path ? RICCI_ENOMEM : RICCI_EINVAL,
			  path ? "out of memory for a module" : "ricci_module_load needs a path");
		return NULL;
	}
	m->generation = fork_generation();
	int code = module_load(&o, m, threads);
	if (o.fd >= 0)
		close(o.fd);
	mem_free(o.body);
	if (!code)
		return m;
	ricci_module_free(m);
	return NULL;
}

void ricci_module_free(ricci_module *m)
{
	if (!m || m->generation != fork_generation())
		return; /* its memory is shared with the parent as long as the child lives */
	ricci_session_free(m->session);
	pack_free(m->pack);
	ricci_graph_free(m->net.g);
	if (m->weights)
		munmap(m->weights, m->bytes);
	arena_free(&m->memory);
	mem_free(m);
}

const ricci_port *ricci_module_input(const ricci_module *m, int k)
{
	return m && k >= 0 && k < m->nport[0] ? &m->port[0][k] : NULL;
}

const ricci_port *ricci_module_output(const ricci_module *m, int k)
{
	return m && k >= 0 && k < m->nport[1] ? &m->port[1][k] : NULL;
}

int ricci_module_feed(ricci_module *m, const char *name, const void *data, size_t bytes)
{
	Error *err = ERROR_TELL;

	if (!m)
		return error_set(err, RICCI_EINVAL, "ricci_module_feed: the module is NULL");
	int k = port_find(m, 0, "ricci_module_feed", name, err);
	return k < 0 ? err->code : ricci_feed(m->session, m->input[k], data, bytes);
}

int ricci_module_run(ricci_module *m)
{
	if (!m)
		return error_set(ERROR_TELL, RICCI_EINVAL, "ricci_module_run: the module is NULL");
	return ricci_step(m->session);
}

int ricci_module_fetch(ricci_module *m, const char *name, void *data, size_t bytes)
{
	Error *err = ERROR_TELL;

	if (!m)
		return error_set(err, RICCI_EINVAL, "ricci_module_fetch: the module is NULL");
	int k = port_find(m, 1, "ricci_module_fetch", name, err);
	return k < 0 ? err->code : ricci_fetch(m->session, m->net.output[k], data, bytes);
}
