/* test_trees.c - what the check of loop trees finds, and the loop trees of one case of each mechanism
 * of lowering, as they are kept in trees.golden (RICCI_BLESS=1 writes it anew). */
#include "jit/lower.h"
#include "tests/jit/lower_harness.h"

#include <stdlib.h>

/* ---- the check ---- */

typedef struct Broken {
	Tree tree;
	Node *in, *out, *local, *i;
} Broken;

static Broken *broken_new(Ir *ir)
{
	Broken *b = arena_alloc(&ir->arena, sizeof *b);
	b->tree = *tree_new(ir);
	b->in = tree_buffer(&b->tree, SPACE_PARAM, "a", RICCI_F32, 8);
	b->out = tree_buffer(&b->tree, SPACE_PARAM, "y", RICCI_F32, 8);
	b->tree.buffer[1].output = true;
	b->local = tree_buffer(&b->tree, SPACE_LOCAL, "acc", RICCI_F32, 8);
	b->i = tree_axis(&b->tree, 8);
	return b;
}

static Stmt *copy(Broken *b, Node *to, Node *from, Node *at)
{
	return stmt_store(&b->tree, to, at, buffer_read(&b->tree, from, at), RED_NONE);
}

static Stmt *loop(Broken *b, Stmt *body)
{
	return stmt_loop(&b->tree, HOW_PARALLEL, b->i, NULL, NULL, body);
}

static void expect(Broken *b, Stmt *root, const char *fault)
{
	b->tree.root = root;
	const char *found = tree_fault(&b->tree);
	CHECK_STR(found ? found : "", fault);
}

static void check_faults(void)
{
	Ir ir;
	ir_init(&ir);
	IR_ENTER(&ir, );
	Broken *b = broken_new(&ir);
	Tree *t = &b->tree;
	Node *beyond = node_add(&ir, b->i, node_int(&ir, 8));
	Node *other = node_input(&ir, "other", RICCI_F32, 1, (int64_t[]){8});
	Node *whole = node_const_int(&ir, RICCI_I64, 1);
	expect(b, loop(b, copy(b, b->out, b->in, b->i)), "");
	expect(b, copy(b, b->out, b->in, b->i), "an axis stands outside of its loop");
	expect(b, loop(b, loop(b, NULL)), "a loop stands inside a loop of the same axis");
	expect(b, loop(b, copy(b, b->out, other, b->i)), "other: a buffer is none of the tree's");
	expect(b, loop(b, copy(b, b->in, b->out, b->i)), "a0: an input is written");
	expect(b, loop(b, copy(b, b->local, b->in, b->i)),
	       "acc2: a local buffer is not allocated here");
	expect(b, loop(b, stmt_seq(stmt_alloc(t, b->local), copy(b, b->local, b->in, b->i))), "");
	expect(b,
	       stmt_seq(loop(b, stmt_alloc(t, b->local)), loop(b, copy(b, b->out, b->local, b->i))),
	       "acc2: a local buffer is not allocated here");
	expect(b, loop(b, copy(b, b->out, b->in, beyond)),
	       "y1: an access lies outside of its buffer");
	expect(b, loop(b, stmt_store(t, b->out, b->i, whole, RED_NONE)),
	       "y1: a value has another type than its buffer");
	expect(b, stmt_loop(t, HOW_SERIAL, b->i, node_int(&ir, 8), NULL, NULL),
	       "a loop is empty that must not be");
	IR_LEAVE(&ir);
	ir_free(&ir);
}

/* ---- kept trees ---- */

typedef struct Kept {
	const char *what;
	Case of;
	const char *schedule; /* NULL: the first offer */
} Kept;
static const Kept kept[] = {
	{"a pointwise nest: lanes, parts", {"Y[i,j] = tanh(X[i,j])", "X=96x4096"}, NULL},
	{"a reduction in lanes, with what is left over", {"Y[i] += X[i,k]", "X=40x1003"}, NULL},
	{"rfactor: a reduction in blocks, and a phase that adds them up",
	 {"Y[j] += X[i,j]", "X=20000x16"},
	 NULL},
	{"a reduction's tile",
	 {"C[i,j] += A[i,k]*B[k,j]", "A=24x16 B=16x32"},
	 "move 1 2; vectorise 1; parallel 0"},
	{"cache-read: a padded tile",
	 {"Y[c,q] += (X[c,q+s-1] else 0)*W[c,s] where q<64, s<3", "X=8x64 W=8x3"},
	 "move 1 2; cache-read 1; vectorise 1; parallel 1"},
	{"taps: the sums at a window's points",
	 {"D[c,r,s] += G[b,c,p,q]*(X[b,c,p+r-1,q+s-1] else 0) where r<3, s<3",
	  "G=4x8x32x32 X=4x8x32x32"},
	 NULL},
	{"a transpose in squares", {"Y[i,j] = X[j,i]", "X=256x256"}, NULL},
	{"index-set splitting at a quotient",
	 {"Y[i,j] = X[i,(j+7)%512] where j<512", "X=64x512"},
	 NULL},
	{"index-set splitting at conditions",
	 {"Y[i,j] = (X[i,j-1] else 0) + X[i,j]", "X=64x512"},
	 NULL},
	{"index-set splitting where conditions change",
	 {"Y[i,j] = (j<256 ? exp(X[i,j]) : 0) + (0 <= j-300 && j<768 ? tanh(X[i,j-300]) : 0) where "
	  "j<1024",
	  "X=64x1024"},
	 "vectorise 1; parallel 1"},
	{"index-set splitting of blocks: around vector loops where all of a block changes, then "
	 "inside a block",
	 {"Y[i,j] = (j<256 ? exp(X[i,j]) : 0) + (0 <= j-704 ? tanh(X[i,j-704]) : 0) where j<1024",
	  "X=64x1024"},
	 "split 1 256; vectorise 2; parallel 1"},
	{"polyphase: remainders of an index",
	 {"Y[i,j] = j%2 == 0 ? A[i,j/2] : B[i,j/2] where j<512", "A=64x256 B=64x256"},
	 NULL},
	{"predicates: short lines with borders",
	 {"Y[c,p,q] += (X[c,p+r-1,q+s-1] else 0)*W[c,r,s] where p<2, q<7, r<3, s<3",
	  "X=64x2x7 W=64x3x3"},
	 NULL},
	{"lines shorter than a vector: two axes in lanes",
	 {"Y[c,p,q] += (X[c,p+r-1,q+s-1] else 0)*W[c,r,s] where p<4, q<4, r<3, s<3",
	  "X=8x4x4 W=8x3x3"},
	 NULL},
	{"a window at quotients: phases of the lanes",
	 {"Y[c,p] += T[c,r,(p+r)/2] where p<16, r<2", "T=2x2x9"},
	 NULL},
	{"the inside of a loop over a tile, each of whose sums goes up to its place",
	 {"Y[t,c] += s <= t ? X[s,c]*F[t-s,c] : 0", "X=64x8 F=64x8"},
	 "split 0 2; move 2 1; move 3 2; vectorise 1; unroll 3; parallel 1"},
	{"a sum in lanes that is over behind its place: the rest of the loop does nothing",
	 {"Y[b,t] += s <= t ? X[b,s]*F[t-s] : 0", "X=4x512 F=512"},
	 "split 1 16; move 1 0; move 2 1; vectorise 3; unroll 0; parallel 1"},
	{"the same backwards, which begins there",
	 {"Y[b,t] += t <= s ? X[b,s]*F[s-t] : 0 where t<512", "X=4x512 F=512"},
	 "split 1 16; move 1 0; move 2 1; vectorise 3; unroll 0; parallel 1"},
	{"a tile along what slides as the sum goes on, not along the samples",
	 {"Y[t,b,c] += t <= s ? X[b,s,c]*F[s-t,c] : 0 where t<512", "X=4x512x128 F=512x128"},
	 NULL},
	{"what is summed in the order of memory: channels outside of a window's points, which "
	 "conditions name first",
	 {"Y[p,q] += 0 <= p-r && p-r < 6 && 0 <= q-s && q-s < 16 ? X[n,p-r,q-s]*W[n,r,s] : 0 where "
	  "p<8, q<18",
	  "X=8x6x16 W=8x3x3"},
	 NULL},
	{"what is summed in the order in which the larger tensor has it",
	 {"Y[i,j] += B[m,l,j]*A[i,l,m]", "B=8x4x16 A=64x4x8"},
	 "move 1 1; move 2 2; vectorise 3; parallel 1"},
	{"a register tile of a batch, across lines that are transposed",
	 {"D[b,i,j] += (X[b,i,k]-Z[b,j,k])*(X[b,i,k]-Z[b,j,k])", "X=2x64x8 Z=2x64x8"},
	 NULL},
	{"a register tile along what groups of channels share: their number, a quotient, has a "
	 "loop",
	 {"Y[b,c,p] += abs(K[b,40*(c/8)+r,p]-X[b,c,p+r])", "K=2x80x32 X=2x16x71"},
	 NULL},
	{"a sum in lanes of one vector and a half: both stay in registers",
	 {"Y[i] += X[i,j]*W[i,j]", "X=64x24 W=64x24"},
	 "vectorise 1; parallel 1"},
	{"a running sum", {"Y[i,j] += X[i,k] where k<j+1, j<512", "X=64x512"}, NULL},
	{"a scatter", {"Y[T[i]:50,d] += X[i,d] where i<200, d<64", "T=200:i32 X=200x64"}, NULL},
	{"rows: a softmax",
	 {"M[i] max= X[i,j]; E[i,j] = exp(X[i,j]-M[i]); S[i] += E[i,j]; Y[i,j] = E[i,j]/S[i]",
	  "X=64x500"},
	 NULL},
	{"a contraction with an epilogue",
	 {"C[i,j] += A[i,k]*B[k,j]; Y[i,j] = max(C[i,j], 0)", "A=96x64 B=64x96"},
	 "tensorise 0; block 0 48; block 1 48; block 2 64; block 3 16"},
	{"an epilogue with a condition that a line of results shares: vectors all the same",
	 {"C[i,j,k] += A[i,j,l]*B[l,k]; Y[i,j,k] = C[i,j,k] + (i != j ? S[i,k] : 0)",
	  "A=8x12x16 B=16x32 S=8x32"},
	 "tensorise 0; block 0 48; block 1 32; block 2 16; block 3 32"},
	{"a batch whose results share lines: one part has them, and blocks of rows are shared out",
	 {"Y[i,j,b] += A[i,k,b]*B[b,k,j]", "A=32x32x16 B=16x32x32"},
	 "tensorise 0; block 0 16; block 1 32; block 2 32; block 3 32"},
	{"panels of an expression: vectors as they lie in memory, in each line that the panel "
	 "meets",
	 {"Y[b,k,p,q] += max(X[b,c,p,q+s], 0)*W[k,c,s]", "X=2x16x6x26 W=16x16x3"},
	 "tensorise 0; block 0 16; block 1 64; block 2 48; block 3 64"},
	{"panels of an expression that lies along K: rows of it, which are transposed",
	 {"Y[i,j] += G[b,i,p]*max(X[b,j,p], 0)", "G=2x16x50 X=2x16x50"},
	 "tensorise 0; block 0 16; block 1 16; block 2 100; block 3 16"},
	{"stages: four products of transformed factors for six, and back",
	 {"Y[n,k,p] += X[n,c,p+r]*W[k,c,r] where p<8", "X=2x4x10 W=4x4x3"},
	 "winograd; stage 0; parallel 1; stage 1; parallel 1; stage 2; tensorise 0; block 0 4; "
	 "block 1 16; block 2 4; block 3 16; stage 3; parallel 1"},
	{"results panel by panel: each tile prefetches what they are computed from, in the last "
	 "block of K",
	 {"G[i,j] += A[k,i]*B[k,j]; Y[i,j] = W[i,j] - G[i,j]", "A=64x1024 B=64x1024 W=1024x1024"},
	 "tensorise 0; block 0 56; block 1 64; block 2 32; block 3 64; share 3"},
	{"a contraction in three phases: shared panels, pieces of K, their sum",
	 {"C[i,j] += A[i,k]*B[k,j]", "A=32x256 B=256x32"},
	 "tensorise 0; block 0 32; block 1 32; block 2 64; block 3 32; rfactor 2; share 3"},
};

/* With micro-kernels of more rows than L1 has ways. */
static const Kept kept_wide[] = {
	{"panels of eight rows, where all rows meet in one set of L1",
	 {"C[i,j] += A[i,k]*B[j,k]", "A=16x1024 B=112x1024"},
	 "tensorise 1; block 0 112; block 1 32; block 2 512; block 3 32; unpacked 1"},
	{"panels in place: nothing of B is packed, each tile prefetches what comes next",
	 {"Y[i,j] += X[i,k]*P[j/32,k,j%32] where j<512", "X=16x2048 P=16x2048x32"},
	 NULL},
};

/* Several equations in one kernel that runs row by row. */
static const Kept kept_rows[] = {
	{"rows: contractions as pieces",
	 {"S[h,i,j] += Q[h,i,d]*K[h,j,d]; M[h,i] max= S[h,i,j]; E[h,i,j] = exp(S[h,i,j]-M[h,i]); "
	  "O[h,i,e] += E[h,i,j]*V[h,j,e]",
	  "Q=6x40x24 K=6x40x24 V=6x40x32"},
	 NULL},
	{"rows: two passes, each prefetches a half of the next row",
	 {"M[c] += X[b,c,y]; Y[b,c,y] = X[b,c,y] - M[c]", "X=4x64x2048"},
	 NULL},
	{"rows: side by side, cut in the loop that prefetches, where the parts meet",
	 {"Y[b,k] = k < 512 ? P[b,k] : Q[b,k-512] where k<1024; S[k] += Y[b,k]",
	  "P=256x512 Q=256x512"},
	 NULL},
	{"rows: a sum over them in vectors",
	 {"E[i,j] = exp(X[i,j]); S[i] += E[i,j]; Y[i,j] = E[i,j]/S[i]; B[j] += Y[i,j]", "X=64x500"},
	 NULL},
};

/* On a grid: what is offered for its device. */
static const Kept kept_grid[] = {
	{"a grid: reads across lines go through the memory of blocks",
	 {"Y[i,j] = 2*X[j,i] + Z[i,j]", "X=3000x4001 Z=4001x3000"},
	 NULL},
};

/* Of a processor with AVX2 and usual caches, whatever this one is. */
static Target target_kept(void)
{
	return (Target){.isa = ISA_SSE2 | ISA_AVX2 | ISA_FMA | ISA_F16C,
			.vector_bytes = 32,
			.masks = true,
			.l1 = 32 << 10,
			.l2 = 512 << 10,
			.l3 = 16 << 20};
}

static void print_kept(Text *out, const Kept *k, const Trial *t, const char *backend,
		       const Target *target)
{
	Error err = {0};
	Schedule s;
	if (k->schedule)
		CHECK_INT(schedule_parse(k->schedule, &s, &err), 0);
	else
		CHECK(schedule_offers(&t->task, target, 1, &s) == 1);
	text_add(out, "# %s\n# %s\n# ", k->what, k->of.text);
	schedule_print(out, &s);
	text_add(out, "\n");
	int code = kernel_tree(&t->task, &s, backend_find(backend), target, out, &err);
	CHECK_REPORT(code == 0, "%s: %s", k->what, err.text);
	text_add(out, "\n");
}

static void print_all(Text *out)
{
	Target usual = target_kept(), wide = target_kept();
	wide.isa |= ISA_AVX512;
	wide.vector_bytes = 64;
	for (int k = 0; k < COUNT(kept); k++)
		print_kept(out, &kept[k], harness_trials(&kept[k].of, true, NULL), "cc", &usual);
	for (int k = 0; k < COUNT(kept_wide); k++)
		print_kept(out, &kept_wide[k], harness_trials(&kept_wide[k].of, true, NULL), "cc",
			   &wide);
	for (int k = 0; k < COUNT(kept_rows); k++)
		print_kept(out, &kept_rows[k], harness_rows(&kept_rows[k].of), "cc", &usual);
	for (int k = 0; k < COUNT(kept_grid); k++)
		print_kept(out, &kept_grid[k], harness_trials(&kept_grid[k].of, false, NULL),
			   "nvrtc", target_grid(true));
}

static void check_kept(const char *path)
{
	Text now = {0}, before = {0};
	print_all(&now);
	if (getenv("RICCI_BLESS")) {
		FILE *f = fopen(path, "w");
		CHECK(f && fwrite(now.s, 1, now.n, f) == now.n);
		if (f)
			fclose(f);
	}
	FILE *f = fopen(path, "r");
	char part[4096];
	CHECK(f != NULL);
	for (size_t n; f && (n = fread(part, 1, sizeof part, f)) > 0;)
		text_put(&before, part, n);
	if (f)
		fclose(f);
	size_t at = 0, line = 1;
	for (; at < now.n && at < before.n && now.s[at] == before.s[at]; at++)
		line += now.s[at] == '\n';
	CHECK_REPORT(at == now.n && at == before.n, "%s: line %zu differs", path, line);
	text_free(&now);
	text_free(&before);
}

int main(void)
{
	check_faults();
	harness_values = false;
	check_kept("tests/jit/trees.golden");
	return harness_done();
}
