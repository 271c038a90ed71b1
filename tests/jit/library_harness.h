/* library_harness.h - what the tests of vendor libraries on devices have in common: kernels whose phase is a call, run
 * and compared; what is written of it; each call of the library failing; the library gone. On the stand-ins for
 * NVIDIA's libraries (fake_cuda.c and what is in it). */
#ifndef LIBRARY_HARNESS_H
#define LIBRARY_HARNESS_H

#include "jit/backend/backend.h"
#include "jit/device/device.h"
#include "jit/library/library.h"
#include "tests/jit/cuda_stand_in.h"
#include "tests/jit/lower_harness.h"

static int library_tested; /* the argument of its step */
static int (*live)(void), (*computed)(void);

/* What kind of call; how many phases, and calls; which operands are copied first. */
typedef struct LibraryCase {
	Case c;
	CallKind kind;
	int phases, calls, copies;
} LibraryCase;

static Kernel *lower_copied(const Trial *t, int copies, Error *err)
{
	Schedule s;
	char text[60];
	snprintf(text, sizeof text, "library %d; share %d; threads 64", library_tested, copies);
	CHECK_INT(schedule_parse(text, &s, err), 0);
	return kernel_lower(&t->task, &s, backend_find("nvrtc"), target_grid(true), err);
}

static Kernel *lower(const Trial *t, Error *err)
{
	return lower_copied(t, 0, err);
}

/* What is written of a call gives it again. */
static void check_text(const KernelCall *c)
{
	Text one = {0}, two = {0};
	KernelCall again;
	call_print(&one, c);
	const char *end = call_parse(one.s, &again);
	CHECK(end && !*end);
	call_print(&two, &again);
	CHECK_STR(two.s, one.s);
	for (size_t n = 0; n < one.n; n += 7) { /* as far as it goes */
		char *cut = strndup(one.s, n);
		CHECK(!call_parse(cut, &again) || n > one.n - 3);
		free(cut);
	}
	text_free(&one);
	text_free(&two);
}

static bool is_inside(const Kernel *k, const KernelCall *c)
{
	return call_inside(c, k->ninput, k->nbuf, k->bytes, k->shape.shared);
}

static void check_number(const Kernel *k, KernelCall *c, int64_t *number, int64_t to)
{
	int64_t was = *number;
	*number = to;
	CHECK_REPORT(!is_inside(k, c), "number %d becomes %lld", (int)(number - &c->kind),
		     (long long)to);
	*number = was;
}

/* No part of it may be larger, so no other place be read, or less than there is; nor be of another kind. */
static void check_inside(const Kernel *k)
{
	KernelCall c = k->shape.call;
	int64_t *grows[2 + CALL_TENSORS * (1 + CALL_RANK)] = {&c.work, &c.work_at};
	int n = 2;
	for (int x = 0; x < CALL_TENSORS; x++) {
		CallTensor *t = &c.tensor[x];
		grows[n++] = &t->at;
		for (int d = 0; d < CALL_RANK; d++)
			grows[n++] = &t->extent[d];
		check_number(k, &c, &t->type, RICCI_I32);
		check_number(k, &c, &t->type, RICCI_NTYPES);
		check_number(k, &c, &t->type, -1);
		check_number(k, &c, &t->buf, k->nbuf);
		if (t->extent[1] > 1)
			check_number(k, &c, &t->stride[1], (int64_t)1 << 60);
		check_number(k, &c, &t->loop[0], -1);
	}
	for (int i = 0; i < n; i++) {
		check_number(k, &c, grows[i], *grows[i] + ((int64_t)1 << 26));
		check_number(k, &c, grows[i], -1);
	}
	check_number(k, &c, &c.tensor[CALL_D].buf, 0); /* an input */
	check_number(k, &c, &c.kind, CALL_KINDS);
	check_number(k, &c, &c.kind, -1);
	check_number(k, &c, &c.library, 0);
	check_number(k, &c, &c.library, 1 << 20);
	check_number(k, &c, &c.loop[1], 0);
	CHECK(is_inside(k, &c));
}

static void test_call(const Trial *t, const LibraryCase *p)
{
	Error err = {0};
	Kernel *k = lower_copied(t, p->copies, &err);
	CHECK_REPORT(k && k->shape.call.kind == p->kind, "%s: %s", t->text, err.text);
	if (!k)
		return;
	CHECK_REPORT(kernel_phases(k) == p->phases, "%s: %d phases", t->text, kernel_phases(k));
	CHECK(kernel_shape_sound(&k->shape));
	check_text(&k->shape.call);
	check_inside(k);
	CHECK_INT(k->backend->compile(k->backend, 1, &k, NULL, &err), 0);
	int before = computed();
	harness_run(t, k);
	CHECK_REPORT(computed() - before == p->calls, "%s: %d calls", t->text, computed() - before);
	kernel_unref(k);
}

static void test_calls(const LibraryCase *p, int n, bool fuse)
{
	for (int i = 0; i < n; i++)
		test_call(harness_trials(&p[i].c, fuse, NULL), &p[i]);
}

static void check_refused(const Trial *t, const char *schedule, const Backend *b, const char *want)
{
	Schedule s;
	Error err = {0};
	CHECK_INT(schedule_parse(schedule, &s, &err), 0);
	Kernel *k = kernel_lower(&t->task, &s, b, backend_target(b), &err);
	CHECK_REPORT(!k, "%s", t->text);
	CHECK_STR(err.text, want);
	kernel_unref(k);
}

static int library_count(const Schedule *s, int n)
{
	int found = 0;
	for (int k = 0; k < n; k++)
		found += s[k].step[0].kind == STEP_LIBRARY && s[k].step[0].arg == library_tested;
	return found;
}

static int offers_of(const char *text, const char *operands, int room, Schedule *s)
{
	const Case c = {text, operands};
	return schedule_offers(&harness_trials(&c, false, NULL)->task, target_grid(true), room, s);
}

/* ---- failures */

static int live_now(Device *d)
{
	device_trim(d);
	return live();
}

/* One run while `call` fails. */
static void check_failure(Device *d, const Trial *t, const char *call, const char *want)
{
	Error err = {0};
	float out[1 << 12];
	void *buf[] = {t->in[0], t->in[1], out};
	int before = live_now(d);
	Kernel *k = lower(t, &err);
	CHECK(k && k->backend->compile(k->backend, 1, &k, NULL, &err) == 0);
	KernelEnv env = {.kernel = k, .err = &err};
	setenv("FAKE_CUDA_FAIL", call, 1);
	k->run(buf, &env, 0, k->shape.parts);
	unsetenv("FAKE_CUDA_FAIL");
	CHECK_INT(err.code, RICCI_EDEVICE);
	CHECK_STR(err.text, want);
	harness_run(t, k); /* and then it runs */
	kernel_unref(k);
	CHECK_INT(live_now(d), before);
}

static int is_missing(const Case *c, const char *want)
{
	Schedule s = {0};
	Error err = {0};
	char why[256] = "";
	const Trial *t = harness_trials(c, false, NULL);
	CHECK(!library_available(library_tested, why, sizeof why));
	CHECK_STR(why, want);
	schedule_add(&s, STEP_LIBRARY, 0, library_tested);
	CHECK(!schedule_available(&s));
	Kernel *k = lower(t, &err);
	CHECK(!k && err.code == RICCI_EUNSUPPORTED && strstr(err.text, want));
	return check_failed;
}

/* So many offers of the library for each of the test's equations. */
static void test_offers(int want);

/* Where a variable has that value the library can't be used, and why. */
typedef struct Absence {
	const char *variable, *value, *want;
} Absence;
static const Absence *absence;
static const Case *absent_case;

static int run_absent(void)
{
	setenv(absence->variable, absence->value, 1);
	is_missing(absent_case, absence->want);
	test_offers(0);
	return check_failed;
}

/* In processes of their own. */
static void check_absences(const Case *c, int n, const Absence *row)
{
	absent_case = c;
	for (absence = row; absence < row + n; absence++)
		CHECK_INT(child(run_absent), 0);
}

#endif
