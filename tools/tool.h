/* tool.h - what the files of the program `ricci` share. */
#ifndef TOOL_H
#define TOOL_H

#include "runtime/runtime.h"
#include "tools/npy.h"

enum { STATUS_OK, STATUS_WRONG, STATUS_USAGE }; /* exit statuses */

/* Says why on stderr, removes half-written files and ends the program. */
_Noreturn void die(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void *take(void *p); /* p, or the end of the program when it is NULL: out of memory */
void *take_data(const char *name, const Node *t); /* room for t's elements */
void check(int code, const Error *e);		  /* ends the program when code is not 0 */

typedef struct Named { /* NAME=VALUE */
	const char *name, *value;
} Named;
typedef struct List {
	int n;
	Named *item;
} List;

typedef struct Options {
	const char *expr;
	List operand, output, seed, along, wrt, grad; /* wrt, grad: values only */
	int order;				      /* of derivatives: 2, else 1 */
	const Backend *backend;			      /* NULL: the best */
	int threads;
	bool time, roofline, profile;
	double seconds; /* of a search */
	const Strategy *strategy;
	const char *picture; /* NULL: none */
	const char *weights; /* of an exported net: their file; NULL: in the source */
	const char *module;  /* an exported net is this file; NULL: C */
} Options;

/* ---- program.c: the expression, its operands and results ---- */
typedef struct Operand {
	const char *name;
	ricci_tensor *tensor;
	Npy array; /* data NULL: only a shape was given */
} Operand;

typedef struct Job {
	ricci_graph *g;
	int noperand, nresult;
	Operand *operand;
	ricci_tensor **result;
	const char **name; /* of the results */
} Job;

void job_open(Job *j, const Options *o); /* reads the operands and builds the graph */
void job_close(Job *j);
/* The names joined by commas, in a text that lives as long as the program: for messages only. */
const char *name_list(int n, const char *const *names);
Operand *job_operand(Job *j, const char *name); /* NULL: none of that name */
int job_result(Job *j, const char *name);	/* its number, -1: none */
bool job_has_data(const Job *j);
void job_draw(Job *j); /* random data for operands that have none */
/* Gradients of the results' sum, weighted by seeds named "d" + result, for each of wrt. */
typedef struct Gradient {
	int n;
	Operand **wrt;
	ricci_tensor **value, **seed; /* seed[r]: of result r, NULL for one that isn't a float */
	ricci_tensor **along;	      /* the directions v, NULL in first order */
	const char **name;
} Gradient;
void gradient_open(Gradient *d, Job *j, const List *wrt);
/* Second order: the values become the sums over j of d(gradient i)/d(operand j) * v_j, the Hessian
 * times directions named "v" + operand. */
void gradient_along(Gradient *d, Job *j);
void gradient_close(Gradient *d);
ricci_tensor *tensor_input(ricci_graph *g, const char *name, const Npy *like);

/* ---- report.c: what is printed ---- */
void report_program(Text *out, Ir *ir, int nroot, Node *const *roots, const char *const *names);
void report_values(Text *out, const char *name, const Node *t, const void *data);
void report_flush(Text *out); /* to standard output, all of it or the end of the program */

/* ---- output.c: files, all of them or none ---- */
void output_write(const char *path, const Node *t, const void *data); /* to a file beside it */
void output_commit(void); /* now they take their names */
void output_forget(void); /* removes the files beside */

/* ---- roofline.c: what bounds each kernel ---- */
typedef struct RooflineReport RooflineReport;
RooflineReport *roofline_open(void);
void roofline_add(void *report, const KernelTime *k); /* as Evaluation.kernel */
void roofline_table(Text *out, RooflineReport *r);
void roofline_json(Text *out, RooflineReport *r); /* members of an object, after others */
void roofline_close(RooflineReport *r);

/* The nodes of tensors; mem_free it. */
Node **nodes_of(int n, ricci_tensor *const *t);

/* ---- commands.c, tune.c, info.c ---- */
int command_show(const Options *o);
int command_grad(const Options *o);
int command_run(const Options *o);
int command_code(const Options *o);
int command_tune(const Options *o);
int command_export(const Options *o);
int command_info(const Options *o);
int command_cache(const Options *o);

#endif
