/* polyphase.c - schedules of nests with quotients and remainders of their indices:
 * dX[z] = z%2 == 1 ? A[z/2] : B[z/2].
 *
 * Input: a pointwise problem. Output: steps that split such an axis by the period of its remainders
 * and write the phases out: each is a statement of its own, whose conditions are decided and
 * whose reads are contiguous. Those of the lanes are written inside them, so that vectors are stored
 * interleaved; so are others that share what they read. Invariant: only index functions are asked. */
#include "jit/nest/internal.h"

/* Residues of all axes together; a shorter line of lanes is not worth it; nor is a longer period looked for. */
enum { WRITTEN_MOST = 8, LANES_LEAST = 4, LINE_LEAST = 16, LINE_MOST = 2048 };

static int64_t period_of(const Problem *p, int k, int64_t most)
{
	return index_phases(p->ir, p->axis[k], p->nout, p->out_value, most);
}

static bool decide(const Problem *p, int k, int64_t phases)
{
	return index_phases_decide(p->ir, p->axis[k], phases, p->nout, p->out_value);
}

int64_t polyphase_lanes(const Problem *p, int k, int64_t most)
{
	int64_t period = period_of(p, k, most);
	return period >= LINE_LEAST && axis_extent(p->axis[k]) % period == 0 ? period : most;
}

/* Into how many phases axis k is split; 1: it is not. Outside of the lanes only conditions are
 * worth it: what else is computed of such an axis is computed once for a line. */
static int64_t phases_of(const Problem *p, int k)
{
	int64_t period = period_of(p, k, PHASES_MOST);
	return period > 1 && axis_extent(p->axis[k]) % period == 0 && decide(p, k, period) ? period
											   : 1;
}

/* The same of the lanes, axis k, in lines of *line: of a longer period, in lines of which conditions still have few
 * phases. */
static int64_t lane_phases(const Problem *p, int k, int64_t *line)
{
	int64_t extent = axis_extent(p->axis[k]), period = period_of(p, k, LINE_MOST);
	*line = extent;
	if (period <= 1 || extent % period)
		return 1;
	if (period <= PHASES_MOST)
		return extent < LANES_LEAST * period ? 1 : period;
	for (int64_t phases = 2; phases <= PHASES_MOST; phases++)
		if (period % phases == 0 && period >= LINE_LEAST * phases && decide(p, k, phases)) {
			*line = period;
			return phases;
		}
	return 1;
}

/* These loops become the innermost ones, and are written out. */
static void write_out(int n, const int *loop, int loops, Schedule *s)
{
	for (int k = 0; k < n; k++) {
		schedule_add(s, STEP_MOVE, loop[k], loops - 1);
		schedule_add(s, STEP_UNROLL, loop[k], 0);
	}
}

int polyphase_offer(const Problem *p, int64_t *extent, Schedule *s)
{
	int last = p->naxis - 1, lanes = last, loops = p->naxis, n = 0, ninner = 0;
	int inner[COMP_MAX_AXES], own = 0;
	WrittenPart w[COMP_MAX_AXES];
	int64_t line, phases = lane_phases(p, last, &line), written = phases;
	for (int k = 0; k < last; k++) {
		int64_t period = phases_of(p, k);
		extent[n++] = axis_extent(p->axis[k]);
		if (period == 1 || written * period > WRITTEN_MOST)
			continue;
		schedule_add(s, STEP_SPLIT, k, period);
		extent[n - 1] /= period;
		w[ninner] = (WrittenPart){k, period};
		inner[ninner++] = loops++;
		written *= period;
	}
	int64_t lines = axis_extent(p->axis[last]) / line;
	if (lines > 1)
		extent[n++] = lines;
	if (written == 1 || n == 0) /* a single line is better cut into parts */
		return 0;
	if (lines > 1) {
		schedule_add(s, STEP_SPLIT, last, line);
		lanes = loops++;
	}
	if (phases > 1) {
		schedule_add(s, STEP_SPLIT, lanes, phases);
		own = loops++;
	}
	bool inside = written_share(p, ninner, w);
	if (!inside)
		write_out(ninner, inner, loops, s);
	schedule_add(s, STEP_MOVE, lanes, loops - 1);
	schedule_add(s, STEP_VECTORISE, lanes, 0);
	if (inside)
		write_out(ninner, inner, loops, s);
	write_out(own > 0, &own, loops, s);
	return n;
}
