/* record.c - steps of a device as recordings, each started by one call.
 *
 * A step whose inputs, states and results are where they were in another, of which the loops are as long, with the
 * same kernels, starts the same launches with the same arguments. The key says the first two: the first step with
 * it is run, the second recorded, and all of them replayed from then on. Most programs have two keys, as states
 * and their next values change places. Where a kernel changes, all are dropped before it goes. Invariant: a recording
 * is of the key beside it, and of the kernels that the program's runs hold.
 */
#include "runtime/program/program.h"
#include <string.h>

enum { KEPT = 8 }; /* of the keys of a program: the last ones used */

typedef struct Step { /* of one key */
	uint64_t *key;
	uint64_t used; /* when it was last; 0: never */
	Recording *recording;
} Step;
struct Records {
	size_t nkey;
	uint64_t *now; /* the present step's key */
	uint64_t clock;
	Step step[KEPT];
	bool off; /* recording has failed */
	Arena memory;
};

/* Does all that a step of p starts follow from what is known before? */
static bool program_known(const Program *p)
{
	for (int i = 0; i < p->nrun; i++)
		if (p->run[i].loop && !loop_known(p, &p->run[i]))
			return false;
	return true;
}

int records_new(Program *p, Error *err)
{
	Records *r;

	if (p->inner || !p->device->kind->record || !env_long("RICCI_RECORD", 1) ||
	    !program_known(p))
		return 0;
	if (!(p->records = r = mem_zalloc(sizeof *r)))
		return error_set(err, RICCI_ENOMEM, "out of memory");
	r->nkey = 1 + (size_t)p->ncell + (size_t)p->nrun;
	r->now = arena_alloc(&r->memory, r->nkey * sizeof *r->now);
	for (int i = 0; i < KEPT; i++)
		if (!(r->step[i].key = arena_alloc(&r->memory, r->nkey * sizeof *r->now)))
			return error_set(err, RICCI_ENOMEM, "out of memory");
	return r->now ? 0 : error_set(err, RICCI_ENOMEM, "out of memory");
}

static void step_drop(Step *s)
{
	recording_free(s->recording);
	s->recording = NULL;
	s->used = 0;
}

void records_drop(Records *r)
{
	for (int i = 0; r && i < KEPT; i++)
		step_drop(&r->step[i]);
}

void records_free(Records *r)
{
	if (!r)
		return;
	records_drop(r);
	arena_free(&r->memory);
	mem_free(r);
}

static void key_make(const Program *p, RandomState rs)
{
	uint64_t *k = p->records->now;

	*k++ = rs.seed;
	for (int i = 0; i < p->ncell; i++)
		*k++ = (uintptr_t)cell_data(&p->cell[i]);
	for (int i = 0; i < p->nrun; i++)
		*k++ = p->run[i].loop ? (uint64_t)loop_steps(p->run[i].loop) : 0;
}

/* All kernels of p were launched so often, by who took no note of it. */
static void program_counted(const Program *p, int64_t times)
{
	for (int i = 0; i < p->nrun; i++)
		if (p->run[i].loop)
			program_counted(loop_program(p->run[i].loop),
					times * loop_steps(p->run[i].loop));
		else
			entry_counted(p->run[i].entry, times);
}

/* The step of the present key; else, in place of the one that was not used for longest, a new one. */
static Step *step_find(Records *r)
{
	Step *oldest = &r->step[0];

	for (int i = 0; i < KEPT; i++) {
		Step *s = &r->step[i];

		if (s->used && !memcmp(s->key, r->now, r->nkey * sizeof *r->now))
			return s;
		if (s->used < oldest->used)
			oldest = s;
	}
	step_drop(oldest);
	memcpy(oldest->key, r->now, r->nkey * sizeof *r->now);
	return oldest;
}

/* Where this fails, nothing has run: kernels are started one by one from then on, and if it was their
 * failure, it is found there. */
static void step_record(Program *p, Step *s, Pool *pool, RandomState rs, Tuner *tuner)
{
	Error why = {0};
	int code = device_record(p->device, rs.step, &why);

	if (!code) {
		code = program_start(p, pool, rs, tuner, false, &why);
		s->recording = device_recorded(p->device, !code, &why);
	}
	p->records->off = !s->recording;
	if (p->records->off && env_long("RICCI_TIME", 0) > 0)
		fprintf(stderr, "ricci: steps are not recorded: %s\n", why.text);
}

int records_run(Program *p, Pool *pool, RandomState rs, Tuner *tuner, bool timing, Error *err)
{
	Records *r = p->records;
	int code = 1;
	Step *s;
	bool again;

	if (r->off)
		return program_start(p, pool, rs, tuner, timing, err);
	key_make(p, rs);
	s = step_find(r);
	again = s->used > 0;
	s->used = ++r->clock;
	if (timing)
		return program_start(p, pool, rs, tuner, true, err);
	if (s->recording && !(code = device_replay(p->device, s->recording, rs.step, err)))
		program_counted(p, 1);
	if (code <= 0)
		return code;
	recording_free(s->recording);
	s->recording = NULL;
	if (again)
		step_record(p, s, pool, rs, tuner);
	if (s->recording)
		code = device_replay(p->device, s->recording, rs.step, err);
	return code <= 0 ? code : program_start(p, pool, rs, tuner, false, err);
}
