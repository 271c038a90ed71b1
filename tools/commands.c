/* commands.c - show, grad, run, code. Each builds the program, makes everything it will print or
 * write, and only then prints and writes. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "tools/tool.h"

#include <math.h>
#include <sched.h>
#include <string.h>

Node **nodes_of(int n, ricci_tensor *const *t)
{
	Node **nodes = take(mem_zalloc((size_t)n * sizeof *nodes));
	for (int k = 0; k < n; k++)
		nodes[k] = t[k]->node;
	return nodes;
}

int command_show(const Options *o)
{
	Job j;
	Text out = {0};
	job_open(&j, o);
	Node **roots = nodes_of(j.nresult, j.result);
	report_program(&out, &j.g->ir, j.nresult, roots, j.name);
	mem_free(roots);
	job_close(&j);
	report_flush(&out);
	return STATUS_OK;
}

/* ---- values ---- */

/* What is evaluated: roots with their names, bindings and where the values go. */
typedef struct Values {
	Ir *ir;
	int nroot, nbind, repeat;
	Node **root;
	const char *const *name; /* of the roots, in messages and reports */
	Binding *bind;
	void **data;
	double seconds;	      /* of a run, the median */
	RooflineReport *roof; /* NULL: not asked for */
	Text profile;	      /* empty: not asked for */
} Values;

static void values_open(Values *v, Job *j, int nroot, ricci_tensor *const *roots,
			const char *const *name, int nmore)
{
	*v = (Values){.ir = &j->g->ir, .nroot = nroot, .nbind = j->noperand, .name = name};
	v->root = nodes_of(nroot, roots);
	v->bind = take(mem_zalloc((size_t)(j->noperand + nmore) * sizeof *v->bind));
	v->data = take(mem_zalloc((size_t)nroot * sizeof *v->data));
	for (int k = 0; k < j->noperand; k++) {
		const Operand *op = &j->operand[k];
		Error e = {0};
		check(data_check(op->tensor, op->array.data, &e), &e);
		v->bind[k] = (Binding){op->tensor->node, op->array.data};
	}
	for (int k = 0; k < nroot; k++)
		v->data[k] = take_data(name[k], v->root[k]);
}

static void values_close(Values *v)
{
	if (v->roof)
		roofline_close(v->roof);
	text_free(&v->profile);
	for (int k = 0; k < v->nroot; k++)
		buffer_free(v->data[k]);
	mem_free(v->data);
	mem_free(v->bind);
	mem_free(v->root);
}

/* With --time once to know how long it takes, then often enough for a median; and once is not
 * enough for the time of each kernel. */
static void values_compute(Values *v, const Options *o)
{
	for (v->repeat = 1;;) {
		Error e = {0};
		Evaluation how = {
			.backend = o->backend, .threads = o->threads, .repeat = v->repeat};
		if (o->roofline && v->repeat > 1) {
			v->roof = roofline_open();
			how.kernel = roofline_add;
			how.user = v->roof;
		}
		if (o->profile && v->repeat > 1)
			how.profile = &v->profile;
		check(evaluate(v->ir, v->nroot, v->root, v->nbind, v->bind, v->data, &how, &e), &e);
		v->seconds = how.median_seconds;
		if (!o->time || v->repeat > 1 || (v->seconds > 2 && !o->roofline && !o->profile))
			return;
		v->repeat = v->seconds > 2	  ? 2
			    : v->seconds > 0.1	  ? 5
			    : v->seconds < 0.0005 ? 1000
						  : (int)(0.5 / v->seconds);
	}
}

static int total_flops(Ir *ir, int nroot, Node *const *roots, double *flops, double *bytes)
{
	Node **order;
	IR_ENTER(ir, -1);
	int n = graph_order(ir, nroot, roots, &order);
	for (int k = 0; k < n; k++) {
		Node *c = order[k];
		*bytes += (double)tensor_bytes(c);
		if (c->op == OP_COMP)
			*flops += comp_flops(ir, c);
	}
	IR_LEAVE(ir);
	return n;
}

/* One line of JSON. gflops counts the arithmetic of the equations as written; gbytes_per_s each
 * tensor of them once. */
static void values_report_time(Text *out, const Values *v, const Options *o)
{
	double flops = 0, bytes = 0;
	if (total_flops(v->ir, v->nroot, v->root, &flops, &bytes) < 0)
		die(STATUS_WRONG, "%s", v->ir->err.text);
	int threads = o->threads;
	cpu_set_t set;
	if (!threads)
		threads = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
	double seconds = v->seconds > 1e-9 ? v->seconds : 1e-9;
	if (v->profile.n)
		text_put(out, v->profile.s, v->profile.n);
	if (v->roof)
		roofline_table(out, v->roof);
	text_add(out,
		 "{\"median_ms\": %.6g, \"gflops\": %.4g, \"gbytes_per_s\": %.4g, \"runs\": %d, "
		 "\"threads\": %d, \"backend\": \"%s\"",
		 seconds * 1e3, flops / seconds * 1e-9, bytes / seconds * 1e-9, v->repeat, threads,
		 o->backend ? o->backend->name : "auto");
	if (v->roof)
		roofline_json(out, v->roof);
	text_add(out, "}\n");
}

/* Where root k goes, or NULL; names[k] is what -o calls it. */
static const char *output_of(const Options *o, const char *name)
{
	for (int k = 0; k < o->output.n; k++)
		if (!strcmp(o->output.item[k].name, name))
			return o->output.item[k].value;
	return NULL;
}

static void outputs_check(const Options *o, int n, const char *const *names, const char *what)
{
	for (int k = 0; k < o->output.n; k++) {
		bool found = false;
		for (int i = 0; i < n; i++)
			found |= !strcmp(o->output.item[k].name, names[i]);
		if (!found)
			die(STATUS_WRONG, "-o %s: there is no %s of that name; there are: %s",
			    o->output.item[k].name, what, name_list(n, names));
		for (int i = 0; i < k; i++)
			if (!strcmp(o->output.item[i].value, o->output.item[k].value))
				die(STATUS_USAGE, "two results can't both go to %s",
				    o->output.item[k].value);
	}
}

/* Files for the roots that -o names (by names[]), the time or the values for the rest. */
static void values_deliver(Text *out, const Values *v, const Options *o, const char *const *names)
{
	for (int k = 0; k < v->nroot; k++) {
		const char *path = output_of(o, names[k]);
		if (path)
			output_write(path, v->root[k], v->data[k]);
		else if (!o->time && !o->output.n)
			report_values(out, v->name[k], v->root[k], v->data[k]);
	}
	if (o->time)
		values_report_time(out, v, o);
}

/* Every operand needs data; with --time they may be drawn. */
static void data_need(Job *j, const Options *o)
{
	if (o->time)
		job_draw(j);
	for (int k = 0; k < j->noperand; k++)
		if (!j->operand[k].array.data)
			die(STATUS_USAGE,
			    "operand '%s' has a shape and no data: give %s=FILE.npy, or --time for "
			    "random data",
			    j->operand[k].name, j->operand[k].name);
}

int command_run(const Options *o)
{
	Job j;
	Text out = {0};
	Values v;
	job_open(&j, o);
	outputs_check(o, j.nresult, j.name, "result");
	data_need(&j, o);
	values_open(&v, &j, j.nresult, j.result, j.name, 0);
	values_compute(&v, o);
	values_deliver(&out, &v, o, j.name);
	output_commit();
	values_close(&v);
	job_close(&j);
	report_flush(&out);
	return STATUS_OK;
}

/* ---- gradients ---- */

/* The data of `input`: what the list gives for `name`, or ones; mem_free it. what: of messages. */
static void *data_or_ones(const List *list, const char *name, const Node *input, const char *what)
{
	size_t n = (size_t)tensor_size(input);
	for (int k = 0; k < list->n; k++) {
		if (strcmp(list->item[k].name, name))
			continue;
		Npy a;
		Error e = {0};
		check(npy_read(list->item[k].value, &a, &e), &e);
		bool same = a.type == input->type && a.rank == tensor_rank(input);
		for (int d = 0; same && d < a.rank; d++)
			same = a.shape[d] == tensor_extent(input, d);
		if (!same)
			die(STATUS_WRONG, "%s: not of the type and shape of the %s '%s'",
			    list->item[k].value, what, name);
		return a.data;
	}
	void *data = take_data(name, input);
	for (size_t i = 0; i < n; i++)
		type_store((Type)input->type, data, i, 1);
	return data;
}

static void along_check(const Options *o, const Gradient *d)
{
	if (o->along.n && o->order != 2)
		die(STATUS_USAGE, "--along belongs to --order 2");
	for (int k = 0; k < o->along.n; k++) {
		bool found = false;
		for (int i = 0; i < d->n; i++)
			found |= !strcmp(d->wrt[i]->name, o->along.item[k].name);
		if (!found)
			die(STATUS_WRONG,
			    "--along %s: there is no operand with a gradient of that name",
			    o->along.item[k].name);
	}
}

static void seeds_check(Job *j, const Options *o, const Gradient *d)
{
	for (int k = 0; k < o->seed.n; k++) {
		int r = job_result(j, o->seed.item[k].name);
		if (r < 0)
			die(STATUS_WRONG, "--seed %s: there is no result of that name",
			    o->seed.item[k].name);
		if (!d->seed[r])
			die(STATUS_WRONG, "--seed %s: that result is no float",
			    o->seed.item[k].name);
	}
}

static void grad_values(Text *out, Job *j, const Options *o, Gradient *d, const char *const *wrt)
{
	Values v;
	values_open(&v, j, d->n, d->value, d->name, j->nresult + d->n);
	int first = v.nbind;
	for (int r = 0; r < j->nresult; r++)
		if (d->seed[r])
			v.bind[v.nbind++] = (Binding){
				d->seed[r]->node,
				data_or_ones(&o->seed, j->name[r], d->seed[r]->node, "result")};
	for (int k = 0; k < d->n && d->along; k++)
		v.bind[v.nbind++] =
			(Binding){d->along[k]->node,
				  data_or_ones(&o->along, wrt[k], d->along[k]->node, "operand")};
	values_compute(&v, o);
	values_deliver(out, &v, o, wrt);
	for (int k = first; k < v.nbind; k++)
		buffer_free((void *)v.bind[k].data);
	values_close(&v);
}

/* What autodiff notes, "# dA: ..", in the order in which it came up. */
static void put_notes(Text *out, const Note *n)
{
	if (!n)
		return;
	put_notes(out, n->next);
	if (n->tensor->op == OP_INPUT)
		text_add(out, "# d%s: %s\n", n->tensor->u.s, n->text);
	else
		text_add(out, "# a local tensor's gradient: %s\n", n->text);
}

int command_grad(const Options *o)
{
	Job j;
	Gradient d;
	Text out = {0};
	job_open(&j, o);
	gradient_open(&d, &j, &o->wrt);
	if (o->order == 2)
		gradient_along(&d, &j);
	const char **wrt = take(mem_zalloc((size_t)d.n * sizeof *wrt));
	for (int k = 0; k < d.n; k++)
		wrt[k] = d.wrt[k]->name;
	outputs_check(o, d.n, wrt, "operand with a gradient");
	seeds_check(&j, o, &d);
	along_check(o, &d);
	if (!o->time) {
		Node **roots = nodes_of(d.n, d.value);
		report_program(&out, &j.g->ir, d.n, roots, d.name);
		mem_free(roots);
		put_notes(&out, j.g->ir.note);
	}
	if (o->time || o->output.n || o->seed.n || o->along.n)
		data_need(&j, o);
	if (job_has_data(&j))
		grad_values(&out, &j, o, &d, wrt);
	output_commit();
	mem_free(wrt);
	gradient_close(&d);
	job_close(&j);
	report_flush(&out);
	return STATUS_OK;
}

/* ---- code ---- */

static void code_add_kernel(Text *out, const Subgraph *sub, const Backend *b, int number)
{
	Error e = {0};
	Schedule s[1];
	Task *t = task_new(sub, &e);
	check(t ? 0 : e.code, &e);
	if (schedule_offers(t, target_host(), COUNT(s), s) < 1)
		die(STATUS_WRONG, "no schedule for\n%s", t->text);
	Kernel *k = kernel_lower(t, &s[0], b, target_host(), &e);
	check(k ? 0 : e.code, &e);
	text_add(out, "%s/* kernel %d\n%s%sschedule: ", number ? "\n" : "", number, t->text,
		 t->text[0] && t->text[strlen(t->text) - 1] != '\n' ? "\n" : "");
	schedule_print(out, &k->schedule);
	text_add(out, "\n*/\n%s", k->source ? k->source : "");
	kernel_unref(k);
	task_free(t);
}

static int code_partition(Ir *ir, int nroot, Node **roots, int *nsub, Subgraph **subs)
{
	DeviceModel dev = device_model(INFINITY);
	IR_ENTER(ir, RICCI_ENOMEM);
	int code = rewrite_graph(ir, nroot, roots);
	if (!code)
		code = fuse_partition(ir, nroot, roots, &dev, nsub, subs);
	IR_LEAVE(ir);
	return code;
}

int command_code(const Options *o)
{
	Job j;
	Gradient d = {0};
	Text out = {0};
	const Backend *b = o->backend;
	char why[128];
	if (!b)
		b = backend_find("cc");
	if (!b || (!o->backend && !b->available(why, sizeof why)))
		b = backend_find("tcc");
	if (!strcmp(b->name, "interp"))
		die(STATUS_USAGE, "the interpreter has no source");
	job_open(&j, o);
	if (o->grad.n)
		gradient_open(&d, &j, &o->grad);
	int nroot = o->grad.n ? d.n : j.nresult, nsub = 0;
	Node **roots = nodes_of(nroot, o->grad.n ? d.value : j.result);
	Subgraph *subs;
	if (code_partition(&j.g->ir, nroot, roots, &nsub, &subs))
		die(STATUS_WRONG, "%s", j.g->ir.err.text);
	for (int k = 0; k < nsub; k++)
		code_add_kernel(&out, &subs[k], b, k);
	mem_free(roots);
	gradient_close(&d);
	job_close(&j);
	report_flush(&out);
	return STATUS_OK;
}
