/* Checkpoints: what is saved comes back bit for bit; and every way a file can be wrong gives an
 * error, leaves the session as it was and an old file whole. */
#include "nn/nn.h"
#include "tests/check.h"
#include "tests/nn/folder.h"

#include <hdf5.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const char *path, *other;

typedef struct Network {
	ricci_graph *g;
	ricci_tensor *x, *w, *loss;
	ricci_session *s;
} Network;

/* A small model; `variant` changes one thing: 1 the equations, 2 a shape, 3 a name, 4 a type. */
static Network model_new(int variant, uint64_t seed)
{
	Network m = {.g = ricci_graph_new()};
	ricci_graph *g = m.g;
	int64_t n = variant == 2 ? 40 : 50;
	m.x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){4, 30});
	m.w = ricci_param(g, variant == 3 ? "weight" : "w", RICCI_F32, 2, (int64_t[]){n, 30},
			  ricci_normal(1));
	ricci_tensor *h = ricci_linear(m.x, m.w, NULL);
	m.loss = ricci_op(
		g, variant == 1 ? "Y[] += X[b,n] * X[b,n] * 0.5" : "Y[] += X[b,n] * X[b,n]", h);
	ricci_state(g, "scalar", variant == 4 ? RICCI_F64 : RICCI_F32, 0, NULL,
		    ricci_constant(3.5));
	ricci_state(g, "count", RICCI_I64, 1, (int64_t[]){3}, ricci_constant(-7));
	ricci_state(g, "double", RICCI_F64, 1, (int64_t[]){5}, ricci_normal(1));
	ricci_state(g, "bytes", RICCI_U8, 1, (int64_t[]){5}, ricci_constant(200));
	ricci_state(g, "flags", RICCI_BOOL, 1, (int64_t[]){5}, ricci_constant(1));
	ricci_state(g, "half", RICCI_F16, 1, (int64_t[]){5}, ricci_normal(1));
	ricci_state(g, "brain", RICCI_BF16, 1, (int64_t[]){5}, ricci_normal(1));
	ricci_state(g, "big", RICCI_F32, 3, (int64_t[]){3, 500, 400}, ricci_normal(1));
	CHECK_GRAPH(g);
	ricci_options o = RICCI_OPTIONS(.backend = RICCI_BACKEND_INTERP, .threads = 1,
					.static_mode = 1, .seed = seed);
	m.s = ricci_session_new(g, &o, 0, 1, &m.loss);
	CHECK_REPORT(m.s != NULL, "%s", ricci_error_message());
	return m;
}

static void model_free(Network *m)
{
	ricci_session_free(m->s);
	ricci_graph_free(m->g);
}

/* A hash of all that the session keeps. */
static uint64_t model_sum(Network *m)
{
	uint64_t h = ricci_step_count(m->s) * 31 + 7;
	for (int i = 0; i < ricci_param_count(m->g); i++) {
		ricci_tensor *t = ricci_param_at(m->g, i, NULL);
		size_t n = ricci_bytes(t);
		uint8_t *v = malloc(n);
		CHECK_INT(ricci_fetch(m->s, t, v, ricci_bytes(t)), 0);
		for (size_t k = 0; k < n; k++)
			h = (h ^ v[k]) * 0x100000001b3u;
		free(v);
	}
	return h;
}

static uint64_t file_sum(const char *name)
{
	FILE *f = fopen(name, "rb");
	uint64_t h = 1;
	for (int c; f && (c = fgetc(f)) != EOF;)
		h = (h ^ (uint64_t)c) * 0x100000001b3u;
	if (f)
		fclose(f);
	return h;
}

static void round_trip(int compress)
{
	Network a = model_new(0, 5), b = model_new(0, 5);
	float w[50 * 30];
	for (int i = 0; i < 1500; i++)
		w[i] = (float)i / 7;
	w[3] = NAN;
	ricci_feed(a.s, a.w, w, ricci_bytes(a.w));
	ricci_set_step(a.s, 1234567890123);
	ricci_position p = RICCI_POSITION(.step = 1, .seed = 2, .epoch = 3, .index = 64,
					  .loss_sum = 0.1, .batches = 2, .wrong = 5),
		       q = RICCI_POSITION(), r = RICCI_POSITION();
	CHECK(model_sum(&a) != model_sum(&b));
	CHECK_REPORT(!ricci_save(a.s, a.loss, path, &p, compress), "%s", ricci_error_message());
	CHECK_REPORT(!ricci_load(b.s, b.loss, path, 0, &q), "%s", ricci_error_message());
	CHECK(model_sum(&a) == model_sum(&b));
	CHECK_INT(ricci_step_count(b.s), 1234567890123);
	CHECK_INT(q.step, 1234567890123);
	CHECK_INT(q.seed, 5);
	CHECK_INT(q.epoch, 3);
	CHECK_INT(q.index, 64);
	CHECK_NEAR(q.loss_sum, 0.1, 0);
	CHECK_INT(q.batches, 2);
	CHECK_INT(q.wrong, 5);
	CHECK_INT(ricci_peek(path, &r), 0);
	CHECK(!memcmp(&q, &r, sizeof q));
	Network c = model_new(1, 9); /* weights alone fit another model and another seed */
	CHECK_INT(ricci_load(c.s, c.loss, path, 1, NULL), 0);
	float got[50 * 30];
	CHECK_INT(ricci_fetch(c.s, c.w, got, ricci_bytes(c.w)), 0);
	CHECK(!memcmp(w, got, sizeof w));
	CHECK_INT(ricci_step_count(c.s), 0);
	model_free(&a);
	model_free(&b);
	model_free(&c);
}

/* Loading fails with this message (which follows the path) and changes nothing. */
static void refuse(int variant, uint64_t seed, const char *file, int weights, const char *want)
{
	Network m = model_new(variant, seed);
	uint64_t before = model_sum(&m);
	ricci_position p = RICCI_POSITION(.step = 99);
	int status = ricci_load(m.s, m.loss, file, weights, &p);
	CHECK(status < 0);
	const char *said = ricci_error_message();
	CHECK(strstr(said, file));
	CHECK_REPORT(strstr(said, want) != NULL, "\"%s\" does not say \"%s\"", said, want);
	CHECK(model_sum(&m) == before);
	CHECK_INT(p.step, 99);
	model_free(&m);
}

static void file_copy(const char *from, const char *to, long bytes, long flip)
{
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	for (long i = 0; i < bytes || bytes < 0; i++) {
		int c = fgetc(in);
		if (c == EOF)
			break;
		fputc(i == flip ? c ^ 1 : c, out);
	}
	fclose(in);
	fclose(out);
}

static void without(const char *name, bool attribute)
{
	file_copy(path, other, -1, -1);
	hid_t f = H5Fopen(other, H5F_ACC_RDWR, H5P_DEFAULT);
	CHECK((attribute ? H5Adelete(f, name) : H5Ldelete(f, name, H5P_DEFAULT)) >= 0);
	H5Fclose(f);
}

static void wrong_files(void)
{
	struct stat st;
	Network a = model_new(0, 5);
	ricci_set_step(a.s, 7);
	CHECK_INT(ricci_save(a.s, a.loss, path, NULL, 0), 0);
	refuse(1, 5, path, 0, "was saved by another model");
	refuse(0, 6, path, 0, "was saved with seed 5, the session has seed 6");
	refuse(2, 5, path, 0, "/parameters/w has the shape [50,30], the model needs [40,30]");
	refuse(2, 5, path, 1, "/parameters/w has the shape [50,30], the model needs [40,30]");
	refuse(3, 5, path, 0, "was saved by another model: it has no dataset /parameters/weight");
	refuse(4, 5, path, 0, "/state/scalar has elements of another type, the model needs f64");
	without("/state/half", false);
	refuse(0, 5, other, 0, "was saved by another model: it has no dataset /state/half");
	without("fingerprint", true);
	refuse(0, 5, other, 0, "is not a checkpoint: it has no attribute fingerprint");
	without("index", true);
	refuse(0, 5, other, 0, "is not a checkpoint: it has no attribute index");
	stat(path, &st);
	for (long n = 0; n < st.st_size - 16; n += st.st_size / 9) {
		file_copy(path, other, n, -1);
		refuse(0, 5, other, 0, "is not a whole HDF5 file");
	}
	file_copy(path, other, st.st_size - 17, -1);
	refuse(0, 5, other, 0, "is not a whole HDF5 file");
	for (long at = 0; at < st.st_size - 16; at += 100003) {
		file_copy(path, other, -1, at);
		refuse(0, 5, other, 0, "is damaged: its checksum differs");
	}
	file_copy(path, other, st.st_size - 16, st.st_size / 2); /* in the values of /state/big */
	refuse(0, 5, other, 0, "/state/big is damaged");
	file_copy(path, other, st.st_size - 1, -1); /* without the checksum all is still there */
	CHECK_INT(ricci_load(a.s, a.loss, other, 0, NULL), 0);
	file_copy("/proc/self/exe", other, 100000, -1);
	refuse(0, 5, other, 0, "is not a whole HDF5 file");
	hid_t f = H5Fcreate(other, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	H5Fclose(f);
	refuse(0, 5, other, 0, "is not a checkpoint");
	unlink(other);
	refuse(0, 5, other, 0, "No such file");
	refuse(0, 5, folder, 0, "Is a directory");
	model_free(&a);
}

/* The disk is full (a limit on the size of files does the same to write): the old file stays. */
static void full_disk(void)
{
	Network a = model_new(0, 5);
	uint64_t before = file_sum(path);
	struct rlimit old, small;
	getrlimit(RLIMIT_FSIZE, &old);
	for (rlim_t size = 0; size < 400000; size += 100000) {
		small = (struct rlimit){size, old.rlim_max};
		setrlimit(RLIMIT_FSIZE, &small);
		int status = ricci_save(a.s, a.loss, path, NULL, 0);
		setrlimit(RLIMIT_FSIZE, &old);
		CHECK_INT(status, RICCI_EIO);
		CHECK(strstr(ricci_error_message(), "File too large"));
		CHECK(file_sum(path) == before);
	}
	sigset_t pending;
	sigpending(&pending);
	CHECK(!sigismember(&pending, SIGXFSZ));
	CHECK_INT(ricci_save(a.s, a.loss, folder, NULL, 0), RICCI_EIO);
	CHECK_INT(ricci_save(a.s, a.loss, "/nowhere/x.h5", NULL, 0), RICCI_EIO);
	CHECK_STR(ricci_error_message(), "cannot write /nowhere/x.h5: No such file or directory");
	Error err = {0};
	CHECK_INT(file_check("/nowhere/x.h5", &err), RICCI_EIO);
	CHECK_STR(err.text, "cannot write /nowhere/x.h5: No such file or directory: /nowhere");
	CHECK_INT(file_check(path, NULL), 0);
	CHECK_INT(ricci_save(a.s, a.loss, path, NULL, 0), 0);
	model_free(&a);
}

/* What other programs see: plain names, shapes and types. */
static void seen_by_others(void)
{
	hid_t f = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
	hid_t d = H5Dopen2(f, "/parameters/w", H5P_DEFAULT), t = H5Dget_type(d);
	CHECK(H5Tequal(t, H5T_IEEE_F32LE) > 0);
	H5Tclose(t);
	H5Dclose(d);
	d = H5Dopen2(f, "/state/half", H5P_DEFAULT);
	double v[5];
	CHECK(H5Dread(d, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
	for (int i = 0; i < 5; i++)
		CHECK(fabs(v[i]) < 6 && v[i] != 0);
	H5Dclose(d);
	d = H5Dopen2(f, "/state/brain", H5P_DEFAULT);
	CHECK(H5Dread(d, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
	for (int i = 0; i < 5; i++)
		CHECK(fabs(v[i]) < 6 && v[i] != 0);
	hid_t p = H5Dget_create_plist(d);
	CHECK_INT(H5Pget_layout(p), H5D_CHUNKED);
	H5Pclose(p);
	H5Dclose(d);
	H5Fclose(f);
}

static void no_memory(void)
{
	long live = mem_live();
	Network a = model_new(0, 5);
	uint64_t before = file_sum(path), sum = model_sum(&a);
	for (int kind = 0; kind < 2; kind++) {
		int status = -1;
		for (int n = 1; n < 200 && status; n++) {
			mem_fail_at(n);
			status = kind ? ricci_load(a.s, a.loss, path, 0, NULL)
				      : ricci_save(a.s, a.loss, other, NULL, 0);
			mem_fail_at(0);
			CHECK(status == 0 || status == RICCI_ENOMEM);
			CHECK(model_sum(&a) == sum);
		}
		CHECK_INT(status, 0);
	}
	CHECK(file_sum(path) == before);
	unlink(other);
	model_free(&a);
	CHECK_INT(mem_live(), live);
}

/* A file of a version that kept no equations loads, and says what to do where it is exported. */
static void without_equations(void)
{
	Network m = model_new(0, 1);
	CHECK_INT(ricci_save(m.s, m.loss, path, NULL, 0), 0);
	hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
	CHECK(f >= 0 && H5Ldelete(f, "/net", H5P_DEFAULT) >= 0 && H5Fclose(f) >= 0);
	CHECK_REPORT(!ricci_load(m.s, m.loss, path, 0, NULL), "%s", ricci_error_message());
	CHECK_INT(ricci_export_checkpoint(path, "net.c", NULL), RICCI_EFORMAT);
	CHECK(strstr(ricci_error_message(),
		     "holds no equations: an older version saved it; load it"));
	model_free(&m);
}

int main(void)
{
	if (!folder_make("checkpoint"))
		return 1;
	path = in_folder("a.h5");
	other = in_folder("b.h5");
	round_trip(0);
	round_trip(6);
	wrong_files();
	without_equations();
	full_disk();
	seen_by_others();
	no_memory();
	folder_close(2,
		     (const char *const[]){"a.h5", "a.h5.prev"}); /* no temporary file was left */
	return check_done();
}
