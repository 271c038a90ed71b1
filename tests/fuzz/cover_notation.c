/* cover_notation.c - any text through the parser and the elaboration; what is accepted prints as a
 * text that is accepted again, for a tensor of the same type and shape; no memory is kept. */
#include "tests/fuzz/cover.h"

#include <string.h>

enum { OPERANDS = 16, RESULTS = 8 };

static const struct {
	const char *name;
	Type type;
	int rank;
	int64_t shape[3];
} tensors[] = {
	{"A", RICCI_F32, 2, {5, 7, 0}},	 {"B", RICCI_F32, 3, {4, 3, 6}},
	{"C", RICCI_F32, 1, {9, 0, 0}},	 {"S", RICCI_F32, 0, {0, 0, 0}},
	{"T", RICCI_I32, 1, {6, 0, 0}},	 {"L", RICCI_I64, 2, {3, 4, 0}},
	{"U", RICCI_U8, 1, {5, 0, 0}},	 {"D", RICCI_F64, 1, {8, 0, 0}},
	{"M", RICCI_BOOL, 1, {6, 0, 0}}, {"H", RICCI_F16, 2, {4, 4, 0}},
};

/* Names that are not in the table are f32 of a rank that depends on the name. */
static Node *operand(Ir *ir, const char *name)
{
	static const int64_t fours[3] = {4, 4, 4};
	for (int k = 0; k < COUNT(tensors); k++)
		if (!strcmp(name, tensors[k].name))
			return node_input(ir, name, tensors[k].type, tensors[k].rank,
					  tensors[k].shape);
	return node_input(ir, name, RICCI_F32, (name[0] + (int)strlen(name)) % 4, fours);
}

static int elaborate(Ir *ir, const char *text, Node **result)
{
	const char **names;
	Node *operands[OPERANDS];
	int nresult, n = notation_operands(ir, text, &names);
	if (n < 0 || n > OPERANDS)
		return -1;
	for (int k = 0; k < n; k++)
		operands[k] = operand(ir, names[k]);
	return notation_elaborate(ir, text, n, operands, &nresult, result, RESULTS) ? -1 : nresult;
}

/* What a printed text may meet: the limits on texts, and proofs that are not found again. */
static bool excused(const Error *e)
{
	static const char *const limits[] = {
		"leaves dimension", "nested", "in a row", "too l", "at most", "out of memory"};
	for (int k = 0; k < COUNT(limits); k++)
		if (strstr(e->text, limits[k]))
			return true;
	return false;
}

static void reprint(Ir *ir, Node *root)
{
	static const char *const name = "Root";
	Node *again[RESULTS];
	Text text = {0};
	if (root->op == OP_INPUT)
		return;
	print_program(&text, ir, 1, &root, &name);
	int n = text.failed ? 1 : elaborate(ir, text.s, again);
	if (n != 1 && !excused(&ir->err))
		wrong(text.s, ir->err.text);
	if (n == 1 && (again[0]->type != root->type || tensor_size(again[0]) != tensor_size(root)))
		wrong(text.s, "is another tensor");
	error_clear(&ir->err);
	text_free(&text);
}

static int text_judge(Ir *ir, const char *text)
{
	Node *result[RESULTS];
	IR_ENTER(ir, 0);
	int n = elaborate(ir, text, result);
	if (n < 0 && !ir->err.code && strlen(text) < 100)
		error_set(&ir->err, RICCI_EINVAL, "too many operands");
	if (n < 0 && ir->err.code && !ir->err.text[0])
		wrong(text, "an error without a message");
	for (int k = 0; k < n; k++)
		reprint(ir, result[k]);
	IR_LEAVE(ir);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Ir ir;
	char *text = malloc(size + 1);
	long live = mem_live();
	memcpy(text, data, size);
	text[size] = 0;
	ir_init(&ir);
	text_judge(&ir, text);
	ir_free(&ir);
	if (mem_live() != live)
		wrong(text, "memory is kept");
	free(text);
	return 0;
}
