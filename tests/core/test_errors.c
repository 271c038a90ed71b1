/* test_errors.c - mistakes in equations, each with the exact message: what, the line of the text, a
 * caret under the place. */
#include "tests/core/operands.h"

/* clang-format off */
static const struct {
	const char *text, *operands; /* one letter each */
	int code;
	const char *message;
} mistakes[] = {
	{"", "", RICCI_ESYNTAX,
	 "equation: the program is empty\n"
	 "  \n"
	 "  ^"},
	{"   ", "", RICCI_ESYNTAX,
	 "equation: the program is empty\n"
	 "     \n"
	 "  ^"},
	{"Y", "", RICCI_ESYNTAX,
	 "equation: expected '[' after the tensor (a scalar is written Y[]), but the text ends\n"
	 "  Y\n"
	 "   ^"},
	{"Y[i", "A", RICCI_ESYNTAX,
	 "equation: expected ',' or ']' after an index, but the text ends\n"
	 "  Y[i\n"
	 "     ^"},
	{"Y[i]", "A", RICCI_ESYNTAX,
	 "equation: expected '=', '+=', '*=', 'max=' or 'min=', but the text ends\n"
	 "  Y[i]\n"
	 "      ^"},
	{"Y[i] =", "A", RICCI_ESYNTAX,
	 "equation: expected a value, but the text ends\n"
	 "  Y[i] =\n"
	 "        ^"},
	{"Y[i] +", "A", RICCI_ESYNTAX,
	 "equation: expected '=', '+=', '*=', 'max=' or 'min=', found '+'\n"
	 "  Y[i] +\n"
	 "       ^"},
	{"Y[i] = A", "A", RICCI_EINVAL,
	 "equation: operand 1 is not used: the program reads no tensor, as A[i] or A[] would\n"
	 "  Y[i] = A\n"
	 "  ^"},
	{"Y[i] = A[", "A", RICCI_ESYNTAX,
	 "equation: expected a value, but the text ends\n"
	 "  Y[i] = A[\n"
	 "           ^"},
	{"Y[i] = A[i", "A", RICCI_ESYNTAX,
	 "equation: expected ',' or ']' after an index, but the text ends\n"
	 "  Y[i] = A[i\n"
	 "            ^"},
	{"Y[i] = A[i] +", "A", RICCI_ESYNTAX,
	 "equation: expected a value, but the text ends\n"
	 "  Y[i] = A[i] +\n"
	 "               ^"},
	{"Y[i] = A[i] where", "A", RICCI_ESYNTAX,
	 "equation: expected the name of an index, but the text ends\n"
	 "  Y[i] = A[i] where\n"
	 "                   ^"},
	{"Y[i] = A[i] where i", "A", RICCI_ESYNTAX,
	 "equation: expected '<' or 'in' after the index of a range, but the text ends\n"
	 "  Y[i] = A[i] where i\n"
	 "                     ^"},
	{"Y[i] = A[i] where i <", "A", RICCI_ESYNTAX,
	 "equation: expected a value, but the text ends\n"
	 "  Y[i] = A[i] where i <\n"
	 "                       ^"},
	{"Y[i] = A[i] where i in", "A", RICCI_ESYNTAX,
	 "equation: expected a value, but the text ends\n"
	 "  Y[i] = A[i] where i in\n"
	 "                        ^"},
	{"Y[i] = A[i] where i in 0", "A", RICCI_ESYNTAX,
	 "equation: expected '..' between the bounds of a range, but the text ends\n"
	 "  Y[i] = A[i] where i in 0\n"
	 "                          ^"},
	{"Y[i] = A[i] where i in 0..", "A", RICCI_ESYNTAX,
	 "equation: expected a value, but the text ends\n"
	 "  Y[i] = A[i] where i in 0..\n"
	 "                            ^"},
	{"Y[i] = A[i] where i<4,", "A", RICCI_ESYNTAX,
	 "equation: expected the name of an index, but the text ends\n"
	 "  Y[i] = A[i] where i<4,\n"
	 "                        ^"},
	{"Y[i] = A[i] else", "A", RICCI_ESYNTAX,
	 "equation: expected a value, but the text ends\n"
	 "  Y[i] = A[i] else\n"
	 "                  ^"},
	{"Y[i] = A[i] > 0 ?", "A", RICCI_ESYNTAX,
	 "equation: expected a value, but the text ends\n"
	 "  Y[i] = A[i] > 0 ?\n"
	 "                   ^"},
	{"Y[i] = A[i] > 0 ? 1", "A", RICCI_ESYNTAX,
	 "equation: expected ':' of a choice, but the text ends\n"
	 "  Y[i] = A[i] > 0 ? 1\n"
	 "                     ^"},
	{"Y[i] = A[i] > 0 ? 1 :", "A", RICCI_ESYNTAX,
	 "equation: expected a value, but the text ends\n"
	 "  Y[i] = A[i] > 0 ? 1 :\n"
	 "                       ^"},
	{"Y[i] = exp(A[i]", "A", RICCI_ESYNTAX,
	 "equation: expected ',' or ')' after an argument, but the text ends\n"
	 "  Y[i] = exp(A[i]\n"
	 "                 ^"},
	{"Y[i] = A.size", "A", RICCI_ESYNTAX,
	 "equation: expected '(' after size, but the text ends\n"
	 "  Y[i] = A.size\n"
	 "               ^"},
	{"Y[i] = A.size(", "A", RICCI_ESYNTAX,
	 "equation: expected the number of a dimension, but the text ends\n"
	 "  Y[i] = A.size(\n"
	 "                ^"},
	{"Y[i] = A.len(0)", "A", RICCI_ESYNTAX,
	 "equation: expected 'size' after the '.', as in A.size(0), found 'len'\n"
	 "  Y[i] = A.len(0)\n"
	 "           ^"},
	{"Y[i] = A[i]; Z", "A", RICCI_ESYNTAX,
	 "equation: expected '[' after the tensor (a scalar is written Y[]), but the text ends\n"
	 "  Y[i] = A[i]; Z\n"
	 "                ^"},
	{"Y(i) = A[i]", "A", RICCI_ESYNTAX,
	 "equation: expected '[' after the tensor (a scalar is written Y[]), found '('\n"
	 "  Y(i) = A[i]\n"
	 "   ^"},
	{"Y[i] == A[i]", "A", RICCI_ESYNTAX,
	 "equation: expected '=', '+=', '*=', 'max=' or 'min=', found '=='\n"
	 "  Y[i] == A[i]\n"
	 "       ^"},
	{"Y[i] = A[i] B[i]", "AB", RICCI_ESYNTAX,
	 "equation: expected an operator, 'where' or ';' after the expression, found 'B'\n"
	 "  Y[i] = A[i] B[i]\n"
	 "              ^"},
	{"Y[i] = A[i] $ 2", "A", RICCI_ESYNTAX,
	 "equation: unknown character '$'\n"
	 "  Y[i] = A[i] $ 2\n"
	 "              ^"},
	{"Y[i] = A[i] × 2", "A", RICCI_ESYNTAX,
	 "equation: unknown character (byte 0xc3)\n"
	 "  Y[i] = A[i] × 2\n"
	 "              ^"},
	{"Y[i] = 2A[i]", "A", RICCI_ESYNTAX,
	 "equation: a number runs into a name\n"
	 "  Y[i] = 2A[i]\n"
	 "          ^"},
	{"Y[i] = 1e*A[i]", "A", RICCI_ESYNTAX,
	 "equation: a number's exponent has no digits\n"
	 "  Y[i] = 1e*A[i]\n"
	 "         ^"},
	{"Y[i] = 99999999999999999999 * A[i]", "A", RICCI_ESYNTAX,
	 "equation: the number does not fit 64 bits; as a float it needs a point\n"
	 "  Y[i] = 99999999999999999999 * A[i]\n"
	 "         ^"},
	{"Y[i] = 1e999 * A[i]", "A", RICCI_ESYNTAX,
	 "equation: the number is too large\n"
	 "  Y[i] = 1e999 * A[i]\n"
	 "         ^"},
	{"Y[i,z] = A[i]", "A", RICCI_ESHAPE,
	 "equation: unknown index z: it stands on the left only, so nothing gives its range; write where z < ..\n"
	 "  Y[i,z] = A[i]\n"
	 "      ^"},
	{"Y[i,z] += A[i] * q", "A", RICCI_ESHAPE,
	 "equation: unknown index z: it stands on the left only, so nothing gives its range; write where z < ..\n"
	 "  Y[i,z] += A[i] * q\n"
	 "      ^"},
	{"Y[i] = A[i,j]", "A", RICCI_ESHAPE,
	 "equation: index j is not on the left, and '=' reduces nothing: use +=, max= ..\n"
	 "  Y[i] = A[i,j]\n"
	 "             ^"},
	{"Y[i,j] += M[i]", "M", RICCI_ESHAPE,
	 "equation: M has 2 dimensions, but 1 index is given\n"
	 "  Y[i,j] += M[i]\n"
	 "            ^"},
	{"Y[i] = A[i] * B[j]", "AB", RICCI_ESHAPE,
	 "equation: index j is not on the left, and '=' reduces nothing: use +=, max= ..\n"
	 "  Y[i] = A[i] * B[j]\n"
	 "                  ^"},
	{"Y[i] += M[i,k] * B[k+1] where k<10", "MB", RICCI_ESHAPE,
	 "equation: index k of M leaves dimension 1: it runs from 0 to 9, the extent is 8\n"
	 "  Y[i] += M[i,k] * B[k+1] where k<10\n"
	 "              ^"},
	{"Y[i] = A[i-1]", "A", RICCI_ESHAPE,
	 "equation: index i-1 of A leaves dimension 0: it runs from -1 to 9, the extent is 10\n"
	 "  Y[i] = A[i-1]\n"
	 "           ^"},
	{"Y[i] = A[i] where i<11", "A", RICCI_ESHAPE,
	 "equation: index i of A leaves dimension 0: it runs from 0 to 10, the extent is 10\n"
	 "  Y[i] = A[i] where i<11\n"
	 "           ^"},
	{"Y[i] = A[9-i] where i<11", "A", RICCI_ESHAPE,
	 "equation: index 9-i of A leaves dimension 0: it runs from -1 to 9, the extent is 10\n"
	 "  Y[i] = A[9-i] where i<11\n"
	 "           ^"},
	{"Y[i] = A[i+j] where i<3", "A", RICCI_ESHAPE,
	 "equation: index j is not on the left, and '=' reduces nothing: use +=, max= ..\n"
	 "  Y[i] = A[i+j] where i<3\n"
	 "             ^"},
	{"Y[i] += A[i+j]", "A", RICCI_ESHAPE,
	 "equation: the range of i can't be inferred from the accesses; write where i < ..\n"
	 "  Y[i] += A[i+j]\n"
	 "    ^"},
	{"Y[i,j] += M[i,k]*P[j,k]", "MP", RICCI_ESHAPE,
	 "equation: the range of k is ambiguous: dimension 1 of M has extent 8, dimension 1 of P has extent 15; write where k < ..\n"
	 "  Y[i,j] += M[i,k]*P[j,k]\n"
	 "                ^      ^"},
	{"Y[i,j] += M[i,k]\n\t* P[j,k]", "MP", RICCI_ESHAPE,
	 "equation: the range of k is ambiguous: dimension 1 of M has extent 8, dimension 1 of P has extent 15; write where k < ..\n"
	 "  Y[i,j] += M[i,k]\n"
	 "                ^\n"
	 "   * P[j,k]\n"
	 "         ^"},
	{"Y[i] = A[i] + E[i]", "AE", RICCI_ESHAPE,
	 "equation: the range of i is ambiguous: dimension 0 of A has extent 10, dimension 0 of E has extent 5; write where i < ..\n"
	 "  Y[i] = A[i] + E[i]\n"
	 "           ^      ^"},
	{"Y[i] = A[i] + (E[i] else 0)", "AE", RICCI_ESHAPE,
	 "equation: the range of i is ambiguous: dimension 0 of A has extent 10, dimension 0 of E has extent 5; write where i < ..\n"
	 "  Y[i] = A[i] + (E[i] else 0)\n"
	 "           ^       ^"},
	{"Y[i] = A[i] + (F[i] ? E[i] : 0)", "AFE", RICCI_ESHAPE,
	 "equation: the range of i is ambiguous: dimension 0 of A has extent 10, dimension 0 of E has extent 5; write where i < ..\n"
	 "  Y[i] = A[i] + (F[i] ? E[i] : 0)\n"
	 "           ^              ^"},
	{"Y[i] = i%2 == 0 ? A[i] : E[i]", "AE", RICCI_ESHAPE,
	 "equation: the range of i is ambiguous: dimension 0 of A has extent 10, dimension 0 of E has extent 5; write where i < ..\n"
	 "  Y[i] = i%2 == 0 ? A[i] : E[i]\n"
	 "                      ^      ^"},
	{"c[i] = A[i+3]; Y[i] = A[i] * c[i]", "A", RICCI_ESHAPE,
	 "equation: the range of i is ambiguous: dimension 0 of A has extent 10, dimension 0 of c has extent 7; write where i < ..\n"
	 "  c[i] = A[i+3]; Y[i] = A[i] * c[i]\n"
	 "                          ^      ^"},
	{"Y[i] = M[i,i]", "M", RICCI_ESHAPE,
	 "equation: the range of i is ambiguous: dimension 0 of M has extent 10, dimension 1 of M has extent 8; write where i < ..\n"
	 "  Y[i] = M[i,i]\n"
	 "           ^ ^"},
	{"m[k] += A[i] where k<1; Y[i,j] = M[i,j] - m[j]", "AM", RICCI_ESHAPE,
	 "equation: the range of j is ambiguous: dimension 1 of M has extent 8, dimension 0 of m has extent 1; write 0 for j in m to repeat it, or where j < ..\n"
	 "  m[k] += A[i] where k<1; Y[i,j] = M[i,j] - m[j]\n"
	 "                                       ^      ^"},
	{"Y[i:6] += A[i]", "A", RICCI_ESHAPE,
	 "equation: the range of i is ambiguous: dimension 0 of Y has extent 6, dimension 0 of A has extent 10; write where i < ..\n"
	 "  Y[i:6] += A[i]\n"
	 "    ^         ^"},
	{"Y[i] = A[i] + (i%2 == 0 ? A[i+2] : 0)", "A", RICCI_ESHAPE,
	 "equation: index i+2 of A leaves dimension 0: it runs from 2 to 10, the extent is 10\n"
	 "  Y[i] = A[i] + (i%2 == 0 ? A[i+2] : 0)\n"
	 "                              ^"},
	{"Y[i] = E[i] + (i%2 == 0 ? -E[i+1] : E[i-1])", "E", RICCI_ESHAPE,
	 "equation: index i+1 of E leaves dimension 0: it runs from 1 to 5, the extent is 5\n"
	 "  Y[i] = E[i] + (i%2 == 0 ? -E[i+1] : E[i-1])\n"
	 "                               ^"},
	{"Y[i] = A[i%2*5 + i/2]", "A", RICCI_ESHAPE,
	 "equation: the range of i can't be inferred: index i%2*5 + i/2 stays inside dimension 0 up to i = 10, and may come back beyond; write where i < ..\n"
	 "  Y[i] = A[i%2*5 + i/2]\n"
	 "           ^"},
	{"Y[i] = A[(i*i)%12]", "A", RICCI_ESHAPE,
	 "equation: the range of i can't be inferred: how far index (i*i)%12 stays inside dimension 0 isn't proved; write where i < ..\n"
	 "  Y[i] = A[(i*i)%12]\n"
	 "           ^"},
	{"Y[i] = i > 0 ? A[i-2] : 0", "A", RICCI_ESHAPE,
	 "equation: index i-2 of A leaves dimension 0: it runs from -1 to 9, the extent is 10\n"
	 "  Y[i] = i > 0 ? A[i-2] : 0\n"
	 "                   ^"},
	{"Y[i] = A[i] + T[i]", "AT", RICCI_ETYPE,
	 "equation: types differ: A[i] is f32, T[i] is i32; write f32(T[i])\n"
	 "  Y[i] = A[i] + T[i]\n"
	 "              ^"},
	{"Y[i] = A[i] + D[i]", "AD", RICCI_ETYPE,
	 "equation: types differ: A[i] is f32, D[i] is f64; write f64(A[i])\n"
	 "  Y[i] = A[i] + D[i]\n"
	 "              ^"},
	{"Y[i] = A[i] + H[i]", "AH", RICCI_ETYPE,
	 "equation: types differ: A[i] is f32, H[i] is f16; write f32(H[i])\n"
	 "  Y[i] = A[i] + H[i]\n"
	 "              ^"},
	{"Y[i] = T[i] + 0.5", "T", RICCI_ETYPE,
	 "equation: T[i] is i32 and can't take the float 0.5: write f32(T[i])\n"
	 "  Y[i] = T[i] + 0.5\n"
	 "              ^"},
	{"Y[i] = A[i] + F[i]", "AF", RICCI_ETYPE,
	 "equation: F[i] is bool and no number: write f32(F[i]) or use it as a condition\n"
	 "  Y[i] = A[i] + F[i]\n"
	 "                ^"},
	{"Y[i] = F[i] != training", "F", RICCI_ETYPE,
	 "equation: F[i] is bool and no number: write f32(F[i]) or use it as a condition\n"
	 "  Y[i] = F[i] != training\n"
	 "         ^"},
	{"Y[i] += F[i]", "F", RICCI_ETYPE,
	 "equation: truth values can't be summed or multiplied: write f32(..) or i32(..) around F[i]\n"
	 "  Y[i] += F[i]\n"
	 "          ^"},
	{"Y[i] = U[i] + 300", "U", RICCI_ETYPE,
	 "equation: 300 does not fit u8\n"
	 "  Y[i] = U[i] + 300\n"
	 "                ^"},
	{"Y[i] = U[i] + 100*3", "U", RICCI_ETYPE,
	 "equation: 100*3 does not fit u8\n"
	 "  Y[i] = U[i] + 100*3\n"
	 "                ^"},
	{"Y[i] = U[i] > -5 ? 1 : 0", "U", RICCI_ETYPE,
	 "equation: -5 does not fit u8\n"
	 "  Y[i] = U[i] > -5 ? 1 : 0\n"
	 "                ^"},
	{"Y[i] = A[i] * (9223372036854775807*2)", "A", RICCI_ETYPE,
	 "equation: 9223372036854775807*2 does not fit 64 bits; as a float it needs a point\n"
	 "  Y[i] = A[i] * (9223372036854775807*2)\n"
	 "                 ^"},
	{"Y[i] = T[i] * (1/2)", "T", RICCI_ETYPE,
	 "equation: T[i] is i32 and can't take the float 1/2: write f32(T[i])\n"
	 "  Y[i] = T[i] * (1/2)\n"
	 "              ^"},
	{"Y[i] = (i + 7/2) % 3", "", RICCI_ETYPE,
	 "equation: % is for integers, but i + 7/2 is a float\n"
	 "  Y[i] = (i + 7/2) % 3\n"
	 "                   ^"},
	{"Y[i] = exp(T[i])", "T", RICCI_ETYPE,
	 "equation: exp takes a float, but T[i] is i32: write f32(T[i])\n"
	 "  Y[i] = exp(T[i])\n"
	 "             ^"},
	{"Y[i] = A[i] % 2", "A", RICCI_ETYPE,
	 "equation: % is for integers, but A[i] is f32\n"
	 "  Y[i] = A[i] % 2\n"
	 "              ^"},
	{"Y[i] = A[A[i]]", "A", RICCI_ETYPE,
	 "equation: A indexes, so it must hold integers, but it is f32: write i32(A[i])\n"
	 "  Y[i] = A[A[i]]\n"
	 "           ^"},
	{"Y[i] = A[0.5*i]", "A", RICCI_ETYPE,
	 "equation: an index is an integer, but 0.5 is a float\n"
	 "  Y[i] = A[0.5*i]\n"
	 "           ^"},
	{"Y[i] = A[G[i]]", "AG", RICCI_ETYPE,
	 "equation: G indexes, so it must hold integers, but it is f32: write i32(G[i])\n"
	 "  Y[i] = A[G[i]]\n"
	 "           ^"},
	{"Y[i] = A[i/j] where i<3,j<2", "A", RICCI_ESHAPE,
	 "equation: index j is not on the left, and '=' reduces nothing: use +=, max= ..\n"
	 "  Y[i] = A[i/j] where i<3,j<2\n"
	 "             ^"},
	{"Y[i] = A[i/0]", "A", RICCI_ESHAPE,
	 "equation: integers divide by positive constants only, not by 0\n"
	 "  Y[i] = A[i/0]\n"
	 "             ^"},
	{"Y[i] = T[i] / S[i] + 1", "TS", RICCI_ESHAPE,
	 "equation: division by a variable: integers divide by constants only, S[i] is none\n"
	 "  Y[i] = T[i] / S[i] + 1\n"
	 "                ^"},
	{"Y[i] = A[i] where i<A.size(1)", "A", RICCI_ESHAPE,
	 "equation: A has 1 dimension, counted from 0: there is no dimension 1\n"
	 "  Y[i] = A[i] where i<A.size(1)\n"
	 "                      ^"},
	{"Y[i] = sinh(A[i])", "A", RICCI_ESYNTAX,
	 "equation: unknown function sinh\n"
	 "  Y[i] = sinh(A[i])\n"
	 "         ^"},
	{"Y[i] = exp(A[i], 2)", "A", RICCI_ESYNTAX,
	 "equation: exp takes 1 argument, 2 given\n"
	 "  Y[i] = exp(A[i], 2)\n"
	 "         ^"},
	{"Y[i] = pow(A[i])", "A", RICCI_ESYNTAX,
	 "equation: pow takes 2 arguments, 1 given\n"
	 "  Y[i] = pow(A[i])\n"
	 "         ^"},
	{"Y[i] = random()", "", RICCI_ESYNTAX,
	 "equation: random takes a key, and maybe the number of an element; 0 arguments given\n"
	 "  Y[i] = random()\n"
	 "         ^"},
	{"Y[i] = f32(A[i], 1)", "A", RICCI_ESYNTAX,
	 "equation: f32 takes 1 argument, 2 given\n"
	 "  Y[i] = f32(A[i], 1)\n"
	 "         ^"},
	{"Y[i,i] = M[i,i]", "M", RICCI_ESHAPE,
	 "equation: index i stands twice on the left\n"
	 "  Y[i,i] = M[i,i]\n"
	 "      ^"},
	{"Y[2*i] = A[i]", "A", RICCI_ESHAPE,
	 "equation: the left side of '=' holds index names only, not 2*i\n"
	 "  Y[2*i] = A[i]\n"
	 "    ^"},
	{"Y[2*i] += A[i]", "A", RICCI_ESHAPE,
	 "equation: 2*i on the left needs the extent of its dimension: 2*i:E\n"
	 "  Y[2*i] += A[i]\n"
	 "    ^"},
	{"Y[2*i:30] *= A[i]", "A", RICCI_ESHAPE,
	 "equation: the left side of '*=' holds index names only, not 2*i\n"
	 "  Y[2*i:30] *= A[i]\n"
	 "    ^"},
	{"Y[i:12] = A[i]", "A", RICCI_ESHAPE,
	 "equation: '=' sets every element of Y, but i runs from 0 to 9, the extent is 12\n"
	 "  Y[i:12] = A[i]\n"
	 "    ^"},
	{"Y[i:A.size(0)+j] += A[i]", "A", RICCI_ESHAPE,
	 "equation: unknown index j in a range\n"
	 "  Y[i:A.size(0)+j] += A[i]\n"
	 "                ^"},
	{"Y[T[i]:4] += A[i]", "AT", RICCI_ETYPE,
	 "equation: T indexes, so it must hold integers, but it is f32: write i32(T[i])\n"
	 "  Y[T[i]:4] += A[i]\n"
	 "    ^"},
	{"Y[i] += A[i] where j<5", "A", RICCI_ESHAPE,
	 "equation: index j stands in where only\n"
	 "  Y[i] += A[i] where j<5\n"
	 "                     ^"},
	{"Y[i] += A[i] where i<5, i<4", "A", RICCI_ESHAPE,
	 "equation: index i has two ranges\n"
	 "  Y[i] += A[i] where i<5, i<4\n"
	 "                          ^"},
	{"Y[i] = A[i] where i<0", "A", RICCI_ESHAPE,
	 "equation: the range of i is empty\n"
	 "  Y[i] = A[i] where i<0\n"
	 "                    ^"},
	{"Y[i] = A[i+30]", "A", RICCI_ESHAPE,
	 "equation: the range of i is empty: index i+30 does not fit dimension 0 of A, of extent 10\n"
	 "  Y[i] = A[i+30]\n"
	 "           ^"},
	{"Y[i] = A[i] where i in 1..5", "A", RICCI_ESHAPE,
	 "equation: the range of i starts at 1, but an index on the left starts at 0\n"
	 "  Y[i] = A[i] where i in 1..5\n"
	 "                    ^"},
	{"Y[i,j] = M[i,j] where j < i+1", "M", RICCI_ESHAPE,
	 "equation: the range of j depends on another index, and '=' sets every element: write a condition with ?:\n"
	 "  Y[i,j] = M[i,j] where j < i+1\n"
	 "                        ^"},
	{"Y[i] += M[i,j] where j < k", "M", RICCI_ESHAPE,
	 "equation: unknown index k in a range\n"
	 "  Y[i] += M[i,j] where j < k\n"
	 "                           ^"},
	{"Y[i] += M[i,j] where j < T[i]", "MT", RICCI_ESHAPE,
	 "equation: a range can't depend on data: write a condition, i < n[b] ? .. : ..\n"
	 "  Y[i] += M[i,j] where j < T[i]\n"
	 "                           ^"},
	{"Y[i] = A[i] where i < 99999999999999", "A", RICCI_ESHAPE,
	 "equation: the range of i is too long\n"
	 "  Y[i] = A[i] where i < 99999999999999\n"
	 "                    ^"},
	{"Y[i:99999999999999] = A[0]", "A", RICCI_ESHAPE,
	 "equation: the extent 99999999999999 is too long\n"
	 "  Y[i:99999999999999] = A[0]\n"
	 "      ^"},
	{"Y[i,j,k] = 1.0 where i < 1000000000000, j < 1000000000000, k<1000", "", RICCI_ESHAPE,
	 "equation: the size of Y overflows 64 bits\n"
	 "  Y[i,j,k] = 1.0 where i < 1000000000000, j < 1000000000000, k<1000\n"
	 "  ^"},
	{"Y[i] = A[i] + Y[i]", "A", RICCI_ESYNTAX,
	 "equation: Y is read in its own equation\n"
	 "  Y[i] = A[i] + Y[i]\n"
	 "                ^"},
	{"Z[i] = Y[i]; Y[i] = A[i]", "A", RICCI_ESYNTAX,
	 "equation: Y is read before it is assigned\n"
	 "  Z[i] = Y[i]; Y[i] = A[i]\n"
	 "         ^"},
	{"Y[i] = A[i]; Y[i] = B[i]", "AB", RICCI_ESYNTAX,
	 "equation: Y is assigned twice; each tensor has one equation\n"
	 "  Y[i] = A[i]; Y[i] = B[i]\n"
	 "               ^"},
	{"A[i] = A[i]", "A", RICCI_ESYNTAX,
	 "equation: A is read in its own equation\n"
	 "  A[i] = A[i]\n"
	 "         ^"},
	{"Y[i] = A[i] + B[i]", "A", RICCI_EINVAL,
	 "equation: no tensor is given for B: the program reads 2 (A, B), 1 given\n"
	 "  Y[i] = A[i] + B[i]\n"
	 "                ^"},
	{"Y[i] = A[i]", "AB", RICCI_EINVAL,
	 "equation: operand 2 is not used: the program reads 1 (A), 2 given\n"
	 "  Y[i] = A[i]\n"
	 "  ^"},
	{"Y[i] = A[i] * A", "A", RICCI_ESYNTAX,
	 "equation: A is a tensor: its elements are written A[...]\n"
	 "  Y[i] = A[i] * A\n"
	 "                ^"},
	{"Y[A] = A[i]", "A", RICCI_ESYNTAX,
	 "equation: A is a tensor and can't be an index\n"
	 "  Y[A] = A[i]\n"
	 "    ^"},
	{"s[i] += A[i+e] where e<2; e[i] = s[i]", "A", RICCI_ESYNTAX,
	 "equation: e is a tensor and can't be an index\n"
	 "  s[i] += A[i+e] where e<2; e[i] = s[i]\n"
	 "                       ^"},
	{"Y[i] = X[T[i]] ; X[i] = A[i]", "AT", RICCI_ESYNTAX,
	 "equation: X is read before it is assigned\n"
	 "  Y[i] = X[T[i]] ; X[i] = A[i]\n"
	 "         ^"},
	{"c[i] = T[i]*T[i]; Y[i] = A[c[i]]", "TA", RICCI_ESHAPE,
	 "equation: index c[i] of A is computed from data: nothing keeps it inside dimension 0 of extent 10; say what stands outside with else, or clamp it with min and max\n"
	 "  c[i] = T[i]*T[i]; Y[i] = A[c[i]]\n"
	 "                             ^"},
	{"Y[i] = A[T[i]] + E[T[i]]*0 + E[T[i]+9]", "ATE", RICCI_ESHAPE,
	 "equation: index T[i]+9 of E fits extent 5 for no data of T\n"
	 "  Y[i] = A[T[i]] + E[T[i]]*0 + E[T[i]+9]\n"
	 "                                 ^"},
	{"Y[a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q] = 1", "", RICCI_ESHAPE,
	 "equation: a tensor has at most 16 dimensions\n"
	 "  Y[a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q] = 1\n"
	 "                                    ^"},
	{"Y[] = A[]", "A", RICCI_ESHAPE,
	 "equation: A has 1 dimension, but 0 indices are given\n"
	 "  Y[] = A[]\n"
	 "        ^"},
	{"Y[i] = S", "S", RICCI_EINVAL,
	 "equation: operand 1 is not used: the program reads no tensor, as A[i] or A[] would\n"
	 "  Y[i] = S\n"
	 "  ^"},
	{"where[i] = A[i]", "A", RICCI_ESYNTAX,
	 "equation: expected the name of a tensor, found 'where'\n"
	 "  where[i] = A[i]\n"
	 "  ^"},
	{"Y[i] = -M[i]", "M", RICCI_ESHAPE,
	 "equation: M has 2 dimensions, but 1 index is given\n"
	 "  Y[i] = -M[i]\n"
	 "          ^"},
	{"Y[i] = !F[i] + -F[i]", "F", RICCI_ETYPE,
	 "equation: F[i] is bool and has no sign: write !F[i]\n"
	 "  Y[i] = !F[i] + -F[i]\n"
	 "                  ^"},
	{"Y[i] = A[i\n  + 1] *\n\tB[j]", "AB", RICCI_ESHAPE,
	 "equation: index j is not on the left, and '=' reduces nothing: use +=, max= ..\n"
	 "   B[j]\n"
	 "     ^"},
	{"Y[] += 1 where i in 5..3", "", RICCI_ESHAPE,
	 "equation: index i stands in where only\n"
	 "  Y[] += 1 where i in 5..3\n"
	 "                 ^"},
	{"Y[i] += random(0.5) * A[i]", "A", RICCI_ETYPE,
	 "equation: an index is an integer, but 0.5 is a float\n"
	 "  Y[i] += random(0.5) * A[i]\n"
	 "                 ^"},
	{"Y[i] = inf * T[i]", "T", RICCI_ETYPE,
	 "equation: T[i] is i32 and can't take the float inf: write f32(T[i])\n"
	 "  Y[i] = inf * T[i]\n"
	 "             ^"},
	{"Y[i] = A.size(0)[i]", "A", RICCI_ESYNTAX,
	 "equation: expected an operator, 'where' or ';' after the expression, found '['\n"
	 "  Y[i] = A.size(0)[i]\n"
	 "                  ^"},
	{"Y[i] = A[i] max 3", "A", RICCI_ESYNTAX,
	 "equation: expected an operator, 'where' or ';' after the expression, found 'max'\n"
	 "  Y[i] = A[i] max 3\n"
	 "              ^"},
	{"Y[i] -= A[i]", "A", RICCI_ESYNTAX,
	 "equation: expected '=', '+=', '*=', 'max=' or 'min=', found '-'\n"
	 "  Y[i] -= A[i]\n"
	 "       ^"},
	{"Y[i] = A[i] = 3", "A", RICCI_ESYNTAX,
	 "equation: expected an operator, 'where' or ';' after the expression, found '='\n"
	 "  Y[i] = A[i] = 3\n"
	 "              ^"},
	{"Y[i] = (A[i]", "A", RICCI_ESYNTAX,
	 "equation: expected ')', but the text ends\n"
	 "  Y[i] = (A[i]\n"
	 "              ^"},
	{"Y[i] = A[i])", "A", RICCI_ESYNTAX,
	 "equation: expected an operator, 'where' or ';' after the expression, found ')'\n"
	 "  Y[i] = A[i])\n"
	 "             ^"},
	{"Y[i] = A[1..2]", "A", RICCI_ESYNTAX,
	 "equation: expected ',' or ']' after an index, found '..'\n"
	 "  Y[i] = A[1..2]\n"
	 "            ^"},
	{"Y[i] = A[i] : 3", "A", RICCI_ESYNTAX,
	 "equation: expected an operator, 'where' or ';' after the expression, found ':'\n"
	 "  Y[i] = A[i] : 3\n"
	 "              ^"},
	{"Y[] += A[i/j] where i<3,j<2", "A", RICCI_ESHAPE,
	 "equation: division by a variable: integers divide by constants only, j is none\n"
	 "  Y[] += A[i/j] where i<3,j<2\n"
	 "             ^"},
	{"Y[i] += M[i,k] * B[k+1] where k<8, i<11", "MB", RICCI_ESHAPE,
	 "equation: index i of M leaves dimension 0: it runs from 0 to 10, the extent is 10\n"
	 "  Y[i] += M[i,k] * B[k+1] where k<8, i<11\n"
	 "            ^"},
	{"Y[i] = A[4611686018427387904*i] else 0 where i<5", "A", RICCI_ESHAPE,
	 "equation: index 4611686018427387904*i of A can leave 64 bits\n"
	 "  Y[i] = A[4611686018427387904*i] else 0 where i<5\n"
	 "           ^"},
	{"U[i] = 4*i64(T[i])*i64(T[i]); Y[i] = U[i]+i < 3 && U[i] >= 0 ? A[U[i]+i] : 0", "TA", RICCI_ESHAPE,
	 "equation: index U[i]+i of A is computed from data: nothing keeps it inside dimension 0 of extent 10; say what stands outside with else, or clamp it with min and max\n"
	 "  U[i] = 4*i64(T[i])*i64(T[i]); Y[i] = U[i]+i < 3 && U[i] >= 0 ? A[U[i]+i] : 0\n"
	 "                                                                   ^"},
	{"V[b,p] += P[b,2*p+r] * W[r] where p<7, r<4", "PW", RICCI_ESHAPE,
	 "equation: index 2*p+r of P leaves dimension 1: it runs from 0 to 15, the extent is 15\n"
	 "  V[b,p] += P[b,2*p+r] * W[r] where p<7, r<4\n"
	 "                ^"},
};
/* clang-format on */

static void test_messages(void)
{
	for (int i = 0; i < COUNT(mistakes); i++) {
		Ir ir;
		ir_init(&ir);
		CHECK_INT(elaborate(&ir, mistakes[i].text, mistakes[i].operands), mistakes[i].code);
		CHECK_STR(ir.err.text, mistakes[i].message);
		ir_free(&ir);
	}
}

/* A message that is too long says so. */
static void test_cut(void)
{
	static char s[4096];
	Error e = {0};
	memset(s, 'x', sizeof s - 1);
	error_set(&e, RICCI_EINVAL, "%s", s);
	CHECK_INT((int64_t)strlen(e.text), (int64_t)sizeof e.text - 1);
	CHECK_STR(e.text + sizeof e.text - 5, "x...");
	error_clear(&e);
	s[sizeof e.text - 1] = 0;
	error_set(&e, RICCI_EINVAL, "%s", s);
	CHECK_STR(e.text, s);
}

int main(void)
{
	test_messages();
	test_cut();
	return check_done();
}
