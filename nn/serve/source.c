/* source.c - a plan as one file of C99 and its header. Input: a plan, the weights' values. Output: text
 * that needs the C library and libm only. Invariant: the text has no state of its own, so that several
 * threads may run it, each with scratch memory of its own. */
#include "nn/serve/serve.h"
#include <string.h>

typedef struct Source {
	const ServePlan *p;
	const ServeText *how;
	Text *c;
	int depth;
} Source;

__attribute__((format(printf, 2, 3))) static void line(Source *s, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	for (int k = 0; k < s->depth; k++)
		text_add(s->c, "\t");
	text_add(s->c, "%s\n", text);
}

static const char *c_type(Type t)
{
	static const char *const name[RICCI_NTYPES] = {
		[RICCI_F32] = "float",	  [RICCI_F64] = "double",  [RICCI_BF16] = "uint16_t",
		[RICCI_F16] = "uint16_t", [RICCI_I8] = "int8_t",   [RICCI_U8] = "uint8_t",
		[RICCI_I32] = "int32_t",  [RICCI_I64] = "int64_t", [RICCI_BOOL] = "uint8_t"};
	return name[t];
}

static const char *shape_text(char room[400], const Node *t)
{
	size_t n = (size_t)snprintf(room, 400, "%s [", type_name((Type)t->type));

	for (int d = 0; d < tensor_rank(t); d++)
		n += (size_t)snprintf(room + n, 400 - n, d ? ",%lld" : "%lld",
				      (long long)tensor_extent(t, d));
	snprintf(room + n, 400 - n, "]");
	return room;
}

/* A name within a comment. */
static const char *comment_text(char room[200], const char *name)
{
	snprintf(room, 200, "%s", name);
	for (char *c = room; *c; c++)
		if ((unsigned char)*c < ' ' || *c == '/' || *c == '\\')
			*c = '_';
	return room;
}

/* ---- values ---- */

static void float_text(Text *out, double v, const char *suffix)
{
	if (v != v)
		text_add(out, "NAN");
	else if (v - v != 0)
		text_add(out, v < 0 ? "-INFINITY" : "INFINITY");
	else
		text_add(out, "%a%s", v, suffix);
}

static void value_text(Text *out, Type type, const void *data, size_t i)
{
	long long v;

	if (type == RICCI_F32 || type == RICCI_F64) {
		float_text(out, type_load(type, data, i), type == RICCI_F32 ? "f" : "");
	} else if (type == RICCI_BF16 || type == RICCI_F16) {
		text_add(out, "%u", ((const uint16_t *)data)[i]);
	} else if (type == RICCI_BOOL) {
		text_add(out, "%u", ((const uint8_t *)data)[i]);
	} else {
		v = type_load_int(type, data, i);
		if (v == INT64_MIN)
			text_add(out, "(-9223372036854775807LL - 1)");
		else
			text_add(out, type == RICCI_I64 ? "%lldLL" : "%lld", v);
	}
}

static void weight_array(Source *s, const ServeTensor *w)
{
	char shape[400], name[200];
	Type type = (Type)w->t->node->type;
	size_t n = (size_t)tensor_size(w->t->node);
	const void *data = s->how->data(s->how->user, w->t);

	line(s, "/* %s: %s */", comment_text(name, w->name), shape_text(shape, w->t->node));
	text_add(s->c, "static const %s %s[%zu] = {", c_type(type), w->ident, n);
	for (size_t i = 0; i < n; i++) {
		text_add(s->c, i % 8 ? " " : "\n\t");
		value_text(s->c, type, data, i);
		text_add(s->c, ",");
	}
	text_add(s->c, "\n};\n");
}

/* ---- kernels ---- */

static void kernel_text(Source *s, int number)
{
	static const char head[] = "void kernel_0(", open[] = "{\n";
	const char *text = s->p->kernel[number]->source, *at = strstr(text, head);
	const char *body = strstr(at, open) + strlen(open);

	text_put(s->c, text, (size_t)(at - text));
	text_add(s->c, "static void k%d(", number);
	text_put(s->c, at + strlen(head), (size_t)(body - at) - strlen(head));
	text_add(s->c, " (void)env;\n (void)begin;\n (void)end;\n");
	text_put(s->c, body, strlen(body));
}

/* ---- places ---- */

static const char *spot_text(const Source *s, const Spot *x, char room[300])
{
	const ServePlan *p = s->p;

	switch (x->kind) {
	case SPOT_INPUT:
		snprintf(room, 300, "in->%.200s", p->input[x->number].ident);
		break;
	case SPOT_WEIGHT:
		if (s->how->weights)
			snprintf(room, 300, "((const char *)weights + %zu)",
				 p->weight[x->number].offset);
		else
			snprintf(room, 300, "%.200s", p->weight[x->number].ident);
		break;
	case SPOT_OUTPUT:
		snprintf(room, 300, "out->%.200s", p->output[x->number].ident);
		break;
	case SPOT_SCRATCH:
		snprintf(room, 300, "(s + %zu)", x->offset);
		break;
	case SPOT_POINTER:
		snprintf(room, 300, "v%d", x->number);
		break;
	}
	return room;
}

static const char *buffer_text(const Source *s, const Stage *stage, const Launch *l, int k,
			       char room[300])
{
	return spot_text(s, &stage->spot[l->spot[k]], room);
}

/* ---- launches ---- */

static void launch_text(Source *s, const Stage *stage, const Launch *l)
{
	char room[300];

	line(s, "{");
	s->depth++;
	line(s, "void *b[%d];", l->nbuf);
	for (int k = 0; k < l->nbuf; k++)
		line(s, "b[%d] = (void *)%s;", k, buffer_text(s, stage, l, k, room));
	line(s, "k%d(b, &env, 0, %lld);", l->number,
	     (long long)s->p->kernel[l->number]->shape.parts);
	s->depth--;
	line(s, "}");
}

static void stage_text(Source *s, const Stage *stage);

static void loop_begin(Source *s, const Stage *stage, const Launch *launch)
{
	const ServeLoop *l = launch->loop;
	const Scan *scan = l->scan;
	int number = launch->number, first = scan->has_length;
	char room[300];

	if (scan->has_length) {
		const Node *length = stage->spot[launch->spot[0]].node;
		line(s, "const int64_t n%d = *(const %s *)(const void *)%s;", number,
		     c_type((Type)length->type), buffer_text(s, stage, launch, 0, room));
		line(s, "if (n%d < 0 || n%d > %lld)", number, number, (long long)scan->bound);
		line(s, "\treturn -1;");
	} else {
		line(s, "const int64_t n%d = %lld;", number, (long long)scan->bound);
	}
	for (int k = 0; k < scan->nstate; k++)
		line(s, "memcpy(s + %zu, %s, %zu);", l->state[k],
		     buffer_text(s, stage, launch, first + scan->nslice + k, room),
		     tensor_bytes(scan->var[scan->nslice + k]));
	line(s, "for (int64_t i%d = 0; i%d < n%d; i%d++) {", number, number, number, number);
	s->depth++;
	line(s, scan->backwards ? "const int64_t t%d = n%d - 1 - i%d;" : "const int64_t t%d = i%d;",
	     number, scan->backwards ? number : number, number);
	line(s, "(void)t%d;", number);
	for (int k = 0; k < scan_nvar(scan); k++) {
		const char *at = buffer_text(s, stage, launch, first + k, room);
		if (k < scan->nslice)
			line(s, "const char *const v%d = (const char *)%s + t%d * %zu;",
			     l->pointer + k, at, number, tensor_bytes(scan->var[k]));
		else if (k < scan->nslice + scan->nstate)
			line(s, "const char *const v%d = s + %zu;", l->pointer + k,
			     l->state[k - scan->nslice]);
		else
			line(s, "const char *const v%d = (const char *)%s;", l->pointer + k, at);
		line(s, "(void)v%d;", l->pointer + k);
	}
}

/* What a step leaves: rows of the stacks, then all states at once. */
static void loop_step_end(Source *s, const Stage *stage, const Launch *launch)
{
	const ServeLoop *l = launch->loop;
	const Scan *scan = l->scan;
	char to[300], from[300];

	for (int k = 0; k < l->nstacked; k++) {
		const Node *n = stage->spot[launch->spot[l->stacked[k]]].node;
		size_t row = tensor_bytes(n->u.result->value);
		line(s, "memcpy((char *)%s + (t%d + %d) * %zu, %s, %zu);",
		     buffer_text(s, stage, launch, l->stacked[k], to), launch->number,
		     (int)scan_row(n->u.result, 0), row,
		     spot_text(s, &l->body.spot[l->body.root[k]], from), row);
	}
	for (int round = 0; round < 2; round++)
		for (int k = 0; k < scan->nstate; k++) {
			const Spot *next = &l->body.spot[l->body.root[l->nstacked + k]];
			size_t bytes = tensor_bytes(scan->var[scan->nslice + k]);
			if (l->next[k] == SIZE_MAX && round)
				line(s, "memcpy(s + %zu, %s, %zu);", l->state[k],
				     spot_text(s, next, from), bytes);
			else if (l->next[k] != SIZE_MAX && round)
				line(s, "memcpy(s + %zu, s + %zu, %zu);", l->state[k], l->next[k],
				     bytes);
			else if (l->next[k] != SIZE_MAX)
				line(s, "memcpy(s + %zu, %s, %zu);", l->next[k],
				     spot_text(s, next, from), bytes);
		}
}

static void loop_end(Source *s, const Stage *stage, const Launch *launch)
{
	const ServeLoop *l = launch->loop;
	const Scan *scan = l->scan;
	char room[300];

	for (int k = launch->ninput; k < launch->nbuf; k++) {
		const ScanResult *r = stage->spot[launch->spot[k]].node->u.result;
		const char *at = buffer_text(s, stage, launch, k, room);
		size_t row = tensor_bytes(r->value);
		if (r->final >= 0) {
			line(s, "memcpy(%s, s + %zu, %zu);", at, l->state[r->final], row);
			continue;
		}
		if (r->ends)
			line(s, "memcpy((char *)%s + %s%d%s * %zu, s + %zu, %zu);", at,
			     scan->backwards ? "0 * n" : "n", launch->number, "", row,
			     l->state[scan_ends_of(r)], row);
		line(s, "memset((char *)%s + (n%d + %d) * %zu, 0, (size_t)(%lld - n%d) * %zu);", at,
		     launch->number, r->ends, row, (long long)scan->bound, launch->number, row);
	}
}

static void loop_text(Source *s, const Stage *stage, const Launch *launch)
{
	line(s, "{");
	s->depth++;
	loop_begin(s, stage, launch);
	stage_text(s, &launch->loop->body);
	loop_step_end(s, stage, launch);
	s->depth--;
	line(s, "}");
	loop_end(s, stage, launch);
	s->depth--;
	line(s, "}");
}

static void stage_text(Source *s, const Stage *stage)
{
	for (int k = 0; k < stage->nlaunch; k++)
		(stage->launch[k].loop ? loop_text : launch_text)(s, stage, &stage->launch[k]);
}

/* ---- the function ---- */

/* Inputs that index are looked at before anything is computed. */
static void check_text(Source *s, const ServeTensor *x)
{
	Type type = (Type)x->t->node->type;
	int64_t lo, hi, low = x->t->need_lo, high = x->t->need_hi;

	if (type_is_float(type))
		return;
	type_range(type, &lo, &hi);
	if (type == RICCI_BOOL)
		low = lo = 0, high = 1, hi = 255;
	if (low <= lo && high >= hi)
		return;
	line(s, "for (size_t i = 0; i < %zu; i++)", (size_t)tensor_size(x->t->node));
	if (low > lo)
		line(s, "\tif (in->%s[i] < %lld || in->%s[i] > %lld)", x->ident, (long long)low,
		     x->ident, (long long)high);
	else
		line(s, "\tif (in->%s[i] > %lld)", x->ident, (long long)high);
	line(s, "\t\treturn -1;");
}

static void run_signature(const Source *s, Text *out)
{
	const char *p = s->how->prefix;

	text_add(out,
		 "int %s_run(%sconst struct %s_in *in, const struct %s_out *out, void *scratch)", p,
		 s->how->weights ? "const void *weights, " : "", p, p);
}

static void run_text(Source *s)
{
	const ServePlan *p = s->p;
	char from[300], to[300];

	text_add(s->c, "\nsize_t %s_size(void)\n{\n\treturn %zu;\n}\n\n", s->how->prefix,
		 p->bytes ? p->bytes : 1);
	run_signature(s, s->c);
	text_add(s->c, "\n{\n");
	s->depth = 1;
	line(s, "char *const s = scratch;");
	line(s, "const KernelEnv env = {0, 0, s + %zu, s + %zu};", p->scratch, p->shared);
	line(s, "(void)env;");
	line(s, "(void)in;");
	if (s->how->weights)
		line(s, "(void)weights;");
	for (int k = 0; k < p->ninput; k++)
		check_text(s, &p->input[k]);
	stage_text(s, &p->stage);
	for (int k = 0; k < p->noutput; k++) {
		const Spot *x = &p->stage.spot[p->stage.root[k]];
		Spot own = {.kind = SPOT_OUTPUT, .number = k};
		if (x->kind != SPOT_OUTPUT || x->number != k)
			line(s, "memcpy(%s, %s, %zu);", spot_text(s, &own, to),
			     spot_text(s, x, from), tensor_bytes(x->node));
	}
	line(s, "return 0;");
	s->depth = 0;
	line(s, "}");
}

/* ---- the file of weights ---- */

enum { WEIGHTS_HEAD = 64 };
static const char weights_magic[16] = "ricci weights 1";

static uint64_t weights_sum(const unsigned char *data, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ data[i]) * 0x100000001b3u;
	return h;
}

int serve_weights(const ServePlan *p, const ServeText *how, Text *out, Error *err)
{
	uint64_t head[3] = {0x0102030405060708u, p->weight_bytes, 0};
	char *data = mem_zalloc(p->weight_bytes + 1), zero[WEIGHTS_HEAD] = {0};

	if (!data)
		return error_set(err, RICCI_ENOMEM, "out of memory for a net's weights");
	for (int k = 0; k < p->nweight; k++)
		memcpy(data + p->weight[k].offset, how->data(how->user, p->weight[k].t),
		       tensor_bytes(p->weight[k].t->node));
	head[2] = weights_sum((unsigned char *)data, p->weight_bytes);
	text_put(out, weights_magic, sizeof weights_magic);
	text_put(out, (const char *)head, sizeof head);
	text_put(out, zero, WEIGHTS_HEAD - sizeof weights_magic - sizeof head);
	if (p->weight_bytes)
		text_put(out, data, p->weight_bytes);
	mem_free(data);
	return out->failed ? error_set(err, RICCI_ENOMEM, "out of memory for a net's weights") : 0;
}

static void load_text(Source *s)
{
	const char *p = s->how->prefix;

	text_add(s->c,
		 "\nsize_t %s_weights(void)\n{\n\treturn %zu;\n}\n\n"
		 "int %s_load(void *weights, const char *path)\n{\n"
		 "\tunsigned char head[%d];\n\tuint64_t number[3], sum = 0xcbf29ce484222325u;\n"
		 "\tFILE *f = fopen(path, \"rb\");\n\tint bad = 0;\n\n\tif (!f)\n\t\treturn -2;\n"
		 "\tif (fread(head, 1, sizeof head, f) != sizeof head ||\n"
		 "\t    memcmp(head, \"%s\", 16) != 0)\n\t\tbad = -3;\n"
		 "\tmemcpy(number, head + 16, sizeof number);\n"
		 "\tif (!bad && (number[0] != 0x0102030405060708u || number[1] != %zuu))\n"
		 "\t\tbad = -3;\n"
		 "\tif (!bad && (fread(weights, 1, %zu, f) != %zu || fgetc(f) != EOF))\n"
		 "\t\tbad = -4;\n\tfclose(f);\n"
		 "\tfor (size_t i = 0; !bad && i < %zuu; i++)\n"
		 "\t\tsum = (sum ^ ((const unsigned char *)weights)[i]) * 0x100000001b3u;\n"
		 "\treturn bad ? bad : sum == number[2] ? 0 : -4;\n}\n",
		 p, s->p->weight_bytes ? s->p->weight_bytes : 1, p, WEIGHTS_HEAD, weights_magic,
		 s->p->weight_bytes, s->p->weight_bytes, s->p->weight_bytes, s->p->weight_bytes);
}

/* ---- the header ---- */

static void struct_text(const Source *s, Text *h, const char *what, int n, const ServeTensor *x)
{
	char shape[400], name[200];
	bool in = *what == 'i';

	text_add(h, "struct %s_%s {\n", s->how->prefix, what);
	for (int k = 0; k < n; k++)
		text_add(h, "\t%s%s *%s; /* %s: %s */\n", in ? "const " : "",
			 c_type((Type)x[k].t->node->type), x[k].ident,
			 comment_text(name, x[k].name), shape_text(shape, x[k].t->node));
	text_add(h, n ? "};\n" : "\tint none;\n};\n");
}

static void usage_text(const Source *s, Text *h)
{
	const char *p = s->how->prefix;
	bool beside = s->how->weights;

	text_add(h, " *\tstruct %s_in in = {", p);
	for (int k = 0; k < s->p->ninput; k++)
		text_add(h, "%s.%s = %s", k ? ", " : "", s->p->input[k].ident,
			 s->p->input[k].ident);
	text_add(h, "};\n *\tstruct %s_out out = {", p);
	for (int k = 0; k < s->p->noutput; k++)
		text_add(h, "%s.%s = %s", k ? ", " : "", s->p->output[k].ident,
			 s->p->output[k].ident);
	text_add(h, "};\n *\tvoid *scratch = malloc(%s_size());\n", p);
	if (beside)
		text_add(h,
			 " *\tvoid *weights = malloc(%s_weights());\n"
			 " *\tif (%s_load(weights, \"%s\"))\n *\t\t.. no such file, or not this "
			 "net's\n",
			 p, p, s->how->weights);
	text_add(h, " *\tif (%s_run(%s&in, &out, scratch))\n *\t\t.. a wrong index in the input\n",
		 p, beside ? "weights, " : "");
}

static void header_text(Source *s, Text *h)
{
	const char *p = s->how->prefix;

	text_add(h,
		 "/* %s - a trained net, exported by Ricci %s. Any compiler of C99, and libm:\n"
		 " *\n",
		 s->how->header, ricci_version());
	usage_text(s, h);
	text_add(
		h,
		" *\n * Arrays are dense, the last index the fastest. Nothing is allocated and "
		"nothing is "
		"kept between calls:\n"
		" * threads may run at once, each with scratch memory of its own (aligned as "
		"malloc "
		"does). Scratch needs\n * no initial value. bf16 and f16 are their bits, bool is 0 "
		"or 1. */\n"
		"#ifndef RICCI_NET_%s_H\n#define RICCI_NET_%s_H\n\n#include <stddef.h>\n#include "
		"<stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
		p, p);
	struct_text(s, h, "in", s->p->ninput, s->p->input);
	struct_text(s, h, "out", s->p->noutput, s->p->output);
	text_add(h, "\n/* Bytes of scratch memory. */\nsize_t %s_size(void);\n", p);
	if (s->how->weights)
		text_add(
			h,
			"/* Bytes of the weights; loads them from the file. 0; -2: it can't be "
			"opened; -3: it is not this net's;\n * -4: it is damaged. */\n"
			"size_t %s_weights(void);\nint %s_load(void *weights, const char *path);\n",
			p, p);
	text_add(h, "/* 0; -1: an integer of the input is out of its range. */\n");
	run_signature(s, h);
	text_add(h, ";\n\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

int serve_source(const ServePlan *p, const ServeText *how, Text *c, Text *h, Error *err)
{
	Source s = {.p = p, .how = how, .c = c};

	text_add(c,
		 "/* A trained net, exported by Ricci %s: %s says how it is used. */\n"
		 "#if defined __GNUC__ && !defined __clang__\n#pragma GCC optimize(\"O3\")\n#elif "
		 "defined __clang__\n"
		 "#pragma clang diagnostic ignored \"-Wunused-function\"\n#endif\n"
		 "#include \"%s\"\n#include <stdio.h>\n",
		 ricci_version(), how->header, how->header);
	portable_prelude(c);
	for (int k = 0; k < p->nweight && !how->weights; k++)
		weight_array(&s, &p->weight[k]);
	for (int k = 0; k < p->nkernel; k++)
		kernel_text(&s, k);
	run_text(&s);
	if (how->weights)
		load_text(&s);
	header_text(&s, h);
	return c->failed || h->failed
		       ? error_set(err, RICCI_ENOMEM, "out of memory for the source of a net")
		       : 0;
}
