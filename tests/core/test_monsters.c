/* test_monsters.c - texts that must not hurt: garbage, deep nesting, long chains, a good text cut
 * short anywhere. */
#include "tests/core/operands.h"

#include <stdlib.h>

/* An error and nothing else. */
static void check_refused(const char *text, const char *operands, const char *part)
{
	Ir ir;

	ir_init(&ir);
	CHECK(elaborate(&ir, text, operands) < 0);
	CHECK_REPORT(strstr(ir.err.text, part) != NULL, "%s\nshould hold\n%s", ir.err.text, part);
	CHECK(strlen(ir.err.text) < 1000);
	ir_free(&ir);
}

static char *repeat(const char *head, const char *part, size_t times, const char *tail)
{
	size_t n = strlen(part);
	char *s = malloc(strlen(head) + n * times + strlen(tail) + 1), *at = s;

	at += sprintf(at, "%s", head);
	for (size_t i = 0; i < times; i++, at += n)
		memcpy(at, part, n);
	strcpy(at, tail);
	return s;
}

static void test_monsters(void)
{
	static const struct {
		const char *head, *part;
		size_t times;
		const char *tail, *message;
	} m[] = {
		{"Y[i] = ", "(", 10000, "A[i]", "nested deeper than 256 levels"},
		{"Y[i] = ", "-", 10000, "A[i]", "nested deeper than 256 levels"},
		{"Y[i] = ", "!", 10000, "A[i]", "nested deeper than 256 levels"},
		{"Y[i] = ", "A[", 10000, "i", "nested deeper than 256 levels"},
		{"Y[i] = ", "exp(", 10000, "A[i]", "nested deeper than 256 levels"},
		{"Y[i] = ", "A[i] ? 1 : ", 10000, "0", "nested deeper than 256 levels"},
		{"Y[i] = ", "A[i] else ", 10000, "0", "nested deeper than 256 levels"},
		{"Y[i] = A[i]", " + A[i]", 10000, "", "more than 600 levels"},
		{"Y[i] = A[", "i,", 10000, "i]", "more than 64 expressions"},
		{"Y[", "i,", 10000, "i] = A[i]", "at most 16 dimensions"},
		{"Y[i] = A[i] where i<3", ", i<3", 10000, "", "more than 32 ranges"},
		{"", "y", 300, "[i] = A[i]", "longer than 255 characters"},
		{"Y[i] = A[i] * 0.", "1", 5000, "", "too many digits"},
		{"Y[i] = A[i] * ", "1", 5000, "", "does not fit 64 bits"},
		{"", "Y[i] = A[i];", 40000, "", "assigned twice"},
		{"", " ", 1 << 21, "", "longer than 1048576 bytes"},
		{"", "\n", 1 << 19, "Y[i = A[i]", "found '='"},
		{"Y[i] = A[i] ", "\x80", 1 << 19, "", "unknown character (byte 0x80)"},
	};
	for (int i = 0; i < COUNT(m); i++) {
		char *s = repeat(m[i].head, m[i].part, m[i].times, m[i].tail);
		check_refused(s, "A", m[i].message);
		free(s);
	}
}

/* 1 MB of bytes, most of them characters of the notation. */
static void test_garbage(void)
{
	static const char likely[] = "YAB[]ij,+*-/%=<>!&|?:;().0123456789 wherelsinmax\n";
	static const char all[] = "AB";
	size_t n = 1000000;
	char *s = malloc(n + 1);
	uint64_t x = 7;

	for (int round = 0; round < 40; round++) {
		for (size_t i = 0; i < n; i++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			int r = (int)(x >> 40);
			s[i] = round % 2 ? (char)(1 + r % 255)
					 : likely[r % (int)(sizeof likely - 1)];
		}
		s[n] = 0;
		if (round < 10)
			memcpy(s, "Y[i] = A[i] + B[i]", 18);
		check_refused(s, all, "equation: ");
	}
	free(s);
}

static void test_cut_short(void)
{
	static const char text[] =
		"m[i] max= A[i] > 1.5e-3 ? M[i,j+1] - 2 : (B[i+j-1] else -inf) where j in 0..7; "
		"Y[i,T[i]:10] += exp(A[i] - m[i]) * f32(i % 3 == 0 && !F[i]) / A.size(0);";
	char s[sizeof text];
	size_t divided = (size_t)(strstr(text, " /") - text); /* a program without it, too */

	for (size_t n = 0; n < sizeof text; n++) {
		Ir ir;
		ir_init(&ir);
		memcpy(s, text, n);
		s[n] = 0;
		int code = elaborate(&ir, s, "AMBTF");
		bool whole = n >= sizeof text - 2 || n == divided || n == divided + 1;
		CHECK_REPORT(whole == (code == 0), "%s\n%s", s, ir.err.text);
		CHECK(whole || strstr(ir.err.text, "^"));
		ir_free(&ir);
	}
}

int main(void)
{
	test_monsters();
	test_garbage();
	test_cut_short();
	return check_done();
}
