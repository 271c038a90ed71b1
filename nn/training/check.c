/* check.c - what a training must be given.
 * Input: a ricci_training. Output: a run whose inputs, measures and columns are known; or an error
 * that says what is missing, before any work is done. */
#include "nn/training/internal.h"

ricci_tensor *run_model(const Run *r)
{
	const ricci_training *t = r->t;
	return t->loss			     ? t->loss
	       : t->misclassified	     ? t->misclassified
	       : t->nmetric > 0 && t->metric ? t->metric[0].tensor
					     : NULL;
}

static int check_tensors(Run *r)
{
	const ricci_training *t = r->t;
	if (t->misclassified &&
	    (ricci_dtype(t->misclassified) != RICCI_I32 ||
	     ricci_bytes(t->misclassified) != sizeof(int32_t) * (size_t)r->batch))
		return FAIL(r, RICCI_ESHAPE, "ricci_train takes errors i32 [batch]");
	if (t->loss && (ricci_rank(t->loss) || ricci_dtype(t->loss) != RICCI_F32))
		return FAIL(r, RICCI_ESHAPE, "the loss is one f32 number, [], not of rank %d",
			    ricci_rank(t->loss));
	const ricci_tensor *rate = t->learning_rate;
	if (rate && (ricci_rank(rate) || ricci_dtype(rate) != RICCI_F32 ||
		     ricci_graph_of(rate) != ricci_graph_of(run_model(r))))
		return FAIL(r, RICCI_ESHAPE,
			    "learning_rate is one f32 number, [], of the graph of the loss");
	return 0;
}

static int check_data(Run *r)
{
	const ricci_training *t = r->t;
	const ricci_data *data[] = {t->train, t->test, t->validation};
	for (int i = 0; i < COUNT(data); i++)
		if (data[i] && feed_check(&r->feed, data[i], &r->err))
			return r->err.code;
	return 0;
}

static int check_limits(Run *r)
{
	const ricci_training *t = r->t;
	if (t->epochs < 0 || !(t->tune >= 0))
		return FAIL(r, RICCI_EINVAL, "ricci_train: %s is less than 0",
			    t->epochs < 0 ? "epochs" : "tune");
	if (!t->evaluate && !t->initial && t->epochs <= 0 && !t->steps)
		return FAIL(r, RICCI_EINVAL, "ricci_train needs a limit: epochs or steps");
	if (t->patience < 0 || t->keep < 0)
		return FAIL(r, RICCI_EINVAL, "ricci_train: %s is less than 0",
			    t->patience < 0 ? "patience" : "keep");
	if (!t->evaluate && (t->compress < 0 || t->compress > 9))
		return FAIL(r, RICCI_EINVAL, "compress is a level of gzip, 0..9, not %d",
			    t->compress);
	if (!t->checkpoint && !t->evaluate && (t->keep || t->keep_best || t->initial))
		return FAIL(r, RICCI_EINVAL, "%s needs a checkpoint's path",
			    t->keep	   ? "keep"
			    : t->keep_best ? "keep_best"
					   : "initial");
	return 0;
}

/* The column that decides. */
static int check_watch(Run *r)
{
	const ricci_training *t = r->t;
	const char *name = t->watch ? t->watch : "validation_loss";
	r->watched = -1;
	if (t->evaluate || (!t->watch && !t->patience && !t->keep_best && !t->validation))
		return 0;
	r->watched = column_named(&r->history, name);
	if (r->watched >= 0 && r->columns.column[r->watched].when != RATE)
		return 0;
	Text known = {0};
	for (int i = 0; i < r->columns.n; i++)
		if (r->columns.column[i].when != RATE)
			text_add(&known, "%s%s", known.n ? ", " : "", r->history.column[i]);
	FAIL(r, RICCI_EINVAL, "there is no value '%s' to watch: there are %s", name,
	     known.s ? known.s : "none");
	text_free(&known);
	return r->err.code;
}

static int check_file(Run *r, const char *path, const char *resume)
{
	if (!path || r->t->evaluate)
		return 0;
	if (!r->t->overwrite && file_there(path, resume))
		return FAIL(r, RICCI_EINVAL,
			    "%s exists: resume from it, or overwrite it (the option of that "
			    "name), or save elsewhere",
			    path);
	return 0;
}

static int check_files(Run *r)
{
	const ricci_training *t = r->t;
	const char *grows[] = {t->csv, t->events};
	int status = t->checkpoint && !t->evaluate ? checkpoint_check(t->checkpoint, &r->err) : 0;
	if (!status)
		status = check_file(r, t->checkpoint, t->resume);
	for (int i = 0; i < COUNT(grows) && !status; i++) {
		if (grows[i] && !t->evaluate)
			status = file_check(grows[i], &r->err);
		if (!status && !t->resume)
			status = check_file(r, grows[i], NULL);
	}
	if (!status && t->picture && !t->evaluate)
		status = file_check(t->picture, &r->err);
	return status;
}

int run_check(Run *r)
{
	const ricci_training *t = r->t;
	bool something = t->evaluate ? run_model(r) && t->test : t->loss && t->train;
	if (!something)
		return FAIL(r, RICCI_EINVAL, "ricci_train needs %s",
			    t->evaluate ? "a loss, errors or metrics, and test data"
					: "a loss and training data");
	ricci_graph *g = ricci_graph_of(run_model(r));
	if (ricci_graph_error(g))
		return ricci_graph_error(g);
	if (feed_inputs(&r->feed, t, &r->err))
		return r->err.code;
	r->batch = (int)r->feed.batch;
	r->tests = r->validation = r->feed;
	int status = check_tensors(r);
	if (!status)
		status = check_limits(r);
	if (!status)
		status = measures_make(&r->measures, t, r->batch, &r->err);
	if (!status)
		status = check_data(r);
	if (status)
		return status;
	columns_make(&r->columns, t, &r->measures, &r->history);
	r->loss = measure_find(&r->measures, "loss");
	r->error = measure_find(&r->measures, "error");
	status = check_watch(r);
	return status ? status : check_files(r);
}
