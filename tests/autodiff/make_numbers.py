#!/usr/bin/env python3
"""Records tests/autodiff/numbers.txt: functions at extreme arguments, with the values and derivatives that they
should have in float64.

    python3 tests/autodiff/make_numbers.py > tests/autodiff/numbers.txt

At finite arguments the closed forms are evaluated with 60 digits (mpmath) and rounded; where a value is infinite, not a
number or a matter of definition (kinks, infinite arguments), it is given here by hand, as docs/gradients.md has it. Programs
of several equations are PyTorch's. The format is that of vectors.txt, all directions 1.
"""
import sys
import torch
import mpmath as mp

mp.mp.dps = 60
INF, NAN = float("inf"), float("nan")
CASES = 0


def rounded(v):
    if isinstance(v, mp.mpc):
        v = v.real if v.imag == 0 else NAN
    return float(v)


def numbers(values):
    return " ".join(f"{v:.17g}" for v in values)


def line(kind, shape, values):
    print(kind, len(shape), *shape)
    print(numbers(values))


def case(name, text, operands, y, dy, results):
    """results: for each operand its gradient and second-order product."""
    global CASES
    CASES += 1
    print(f"case {name}\n{text}")
    for shape, values in operands:
        line("f64", shape, values)
    line("y", *y)
    line("dy", *dy)
    for (shape, _), (grad, second) in zip(operands, results):
        line("grad", shape, grad)
        line("u", shape, [1.0] * len(grad))
        line("second", shape if second else (0,), second)


def unary(name, text, xs, f, df, ddf, by_hand):
    """by_hand: argument -> (value, first, second)."""
    keys = {repr(k): v for k, v in by_hand.items()}
    rows = [keys[repr(x)] if repr(x) in keys else
            tuple(rounded(g(mp.mpf(x))) for g in (f, df, ddf)) for x in xs]
    y, d, dd = map(list, zip(*rows))
    n = (len(xs),)
    case(name, text, [(n, xs)], (n, y), (n, [1.0] * len(xs)), [(d, dd)])


WIDE = [0.0, -0.0, 1e-300, -1e-300, 1e-30, -1e-30, 1e-9, 0.5, -0.5, 1.0, -3.0, 20.0, -20.0, 40.0, -40.0, 700.0, -700.0,
        800.0, -800.0, 1e30, -1e30, 1e300, -1e300, INF, -INF, NAN]
POSITIVE = [1e-300, 1e-200, 1e-90, 1e-30, 0.5, 1.0, 3.0, 1e30, 1e90, 1e200, 1e300]
NANS = {NAN: (NAN, NAN, NAN)}
sig = lambda x: 1 / (1 + mp.exp(-x))

unary("sigmoid", "Y[i] = sigmoid(X[i])", WIDE, sig, lambda x: sig(x) * sig(-x),
      lambda x: sig(x) * sig(-x) * (sig(-x) - sig(x)), {INF: (1, 0, 0), -INF: (0, 0, 0), **NANS})
unary("tanh", "Y[i] = tanh(X[i])", WIDE, mp.tanh, lambda x: mp.sech(x)**2,
      lambda x: -2 * mp.tanh(x) * mp.sech(x)**2, {INF: (1, 0, 0), -INF: (-1, 0, 0), **NANS})
soft = lambda x: mp.log1p(mp.exp(x)) if x < 50 else x + mp.exp(-x)
unary("softplus", "Y[i] = max(X[i],0) + log1p(exp(0-abs(X[i])))", WIDE[2:], soft, sig,
      lambda x: sig(x) * sig(-x), {INF: (INF, 1, 0), -INF: (0, 0, 0), **NANS})
unary("exp", "Y[i] = exp(X[i])", WIDE, mp.exp, mp.exp, mp.exp,
      {INF: (INF, INF, INF), -INF: (0, 0, 0), **NANS})
unary("expm1", "Y[i] = expm1(X[i])", WIDE, mp.expm1, mp.exp, mp.exp,
      {INF: (INF, INF, INF), -INF: (-1, 0, 0), **NANS})
unary("erf", "Y[i] = erf(X[i])", WIDE, mp.erf, lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x),
      lambda x: -4 * x / mp.sqrt(mp.pi) * mp.exp(-x * x),
      {INF: (1, 0, NAN), -INF: (-1, 0, NAN), **NANS})
unary("abs", "Y[i] = abs(X[i])", WIDE, abs, mp.sign, lambda x: 0 * x,
      {INF: (INF, 1, 0), -INF: (INF, -1, 0), NAN: (NAN, NAN, 0)})
unary("x over 1 + abs x", "Y[i] = X[i]/(1+abs(X[i]))", [x for x in WIDE if abs(x) < 1e100], lambda x: x / (1 + abs(x)),
      lambda x: 1 / (1 + abs(x))**2, lambda x: -2 * mp.sign(x) / (1 + abs(x))**3, {NAN: (NAN, NAN, NAN)})
unary("sqrt", "Y[i] = sqrt(X[i])", POSITIVE + [0.0, INF, NAN, -1.0], mp.sqrt, lambda x: 0.5 / mp.sqrt(x),
      lambda x: -0.25 / x / mp.sqrt(x),
      {0.0: (0, INF, -INF), INF: (INF, 0, 0), -1.0: (NAN, NAN, NAN), **NANS})
unary("rsqrt", "Y[i] = rsqrt(X[i])", POSITIVE + [0.0, INF, NAN, -1.0], lambda x: 1 / mp.sqrt(x),
      lambda x: -0.5 / x / mp.sqrt(x), lambda x: 0.75 / x / x / mp.sqrt(x),
      {0.0: (INF, -INF, INF), INF: (0, 0, 0), -1.0: (NAN, NAN, NAN), **NANS})
unary("log", "Y[i] = log(X[i])", POSITIVE + [0.0, INF, NAN], mp.log, lambda x: 1 / x, lambda x: -1 / x / x,
      {0.0: (-INF, INF, -INF), INF: (INF, 0, 0), **NANS})
unary("log1p", "Y[i] = log1p(X[i])", [1e-300, -1e-300, 1e-20, 0.0, 0.5, -0.5, 1e30, 1e300, INF, -1.0, NAN], mp.log1p,
      lambda x: 1 / (1 + x), lambda x: -1 / (1 + x)**2,
      {-1.0: (-INF, INF, -INF), INF: (INF, 0, 0), **NANS})
unary("reciprocal", "Y[i] = 1/X[i]", POSITIVE + [-x for x in POSITIVE] + [0.0, INF, NAN], lambda x: 1 / x,
      lambda x: -1 / x / x, lambda x: 2 / x**3,
      {0.0: (INF, -INF, INF), INF: (0, 0, 0), **NANS})
unary("relu by a choice", "Y[i] = X[i] > 0 ? X[i] : 0", [1.0, -1.0, 0.0, INF, -INF],
      lambda x: max(x, 0), lambda x: mp.mpf(x > 0), lambda x: 0 * x,
      {INF: (INF, 1, 0), -INF: (0, 0, 0)})
unary("relu by a maximum", "Y[i] = max(X[i], 0)", [1.0, -1.0, 0.0, INF, -INF, NAN],
      lambda x: max(x, 0), lambda x: mp.mpf(x > 0), lambda x: 0 * x,
      {0.0: (0, 0.5, 0), INF: (INF, 1, 0), -INF: (0, 0, 0), NAN: (NAN, 1, 0)})
unary("log where positive", "Y[i] = X[i] > 0 ? log(X[i]) : 0", [1.0, 0.0, -1.0, 1e-300, INF, NAN],
      mp.log, lambda x: 1 / x, lambda x: -1 / x / x,
      {0.0: (0, 0, 0), -1.0: (0, 0, 0), INF: (INF, 0, 0), NAN: (0, 0, 0)})
unary("square", "Y[i] = X[i]*X[i]", WIDE, lambda x: x * x, lambda x: 2 * x, lambda x: mp.mpf(2),
      {INF: (INF, INF, 2), -INF: (INF, -INF, 2), NAN: (NAN, NAN, 2)})
for p in (-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0):
    xs = [1e-300, 1e-30, 0.5, 1.0, 2.0, 1e30, 1e150] + [0.0] + ([-2.0, -1e-30] if p % 1 == 0 else [-2.0])
    zero = {-2.0: (INF, -INF, INF), -1.0: (INF, -INF, INF), 0.0: (1, 0, 0), 0.5: (0, INF, -INF), 1.0: (0, 1, 0),
            2.0: (0, 0, 2), 3.0: (0, 0, 0)}[p]
    hand = {0.0: zero, NAN: (1, 0, 0) if p == 0 else (NAN, NAN, NAN)}
    if p == 1:
        hand[NAN] = (NAN, 1, 0)
    if p == 0.5:
        hand[-2.0] = (NAN, NAN, NAN)
    unary(f"power {p:g}", f"Y[i] = pow(X[i], 0.0+{p})" if p >= 0 else f"Y[i] = pow(X[i], 0.0-{-p})",
          [x for x in xs if not (p == 2 and x == NAN)], lambda x: x**mp.mpf(p), lambda x: p * x**mp.mpf(p - 1),
          lambda x: p * (p - 1) * x**mp.mpf(p - 2), hand)


# ---- two operands: (a, b) -> value, by a, by b; second orders are not asked for (NaN entries would hide them)
def binary(name, text, rows):
    a, b, y, da, db = map(list, zip(*rows))
    n = (len(a),)
    case(name, text, [(n, a), (n, b)], (n, y), (n, [1.0] * len(a)), [(da, []), (db, [])])


LN2 = 0.69314718055994531
binary("pow of two", "Y[i] = pow(A[i], B[i])", [
    (2.0, 3.0, 8.0, 12.0, 8 * LN2), (0.0, 0.0, 1.0, 0.0, 0.0), (0.0, 1.0, 0.0, 1.0, 0.0), (0.0, 2.0, 0.0, 0.0, 0.0),
    (0.0, 0.5, 0.0, INF, 0.0), (0.0, -1.0, INF, -INF, -INF), (-2.0, 3.0, -8.0, 12.0, NAN),
    (-2.0, 2.0, 4.0, -4.0, NAN), (-2.0, 0.5, NAN, NAN, NAN), (3.0, 0.0, 1.0, 0.0, 1.0986122886681098),
    (1.0, 1e30, 1.0, 1e30, 0.0), (1e-300, 1.0, 1e-300, 1.0, -6.9077552789821368e-298), (2.0, -1e30, 0.0, -0.0, 0.0),
    (INF, 2.0, INF, INF, INF), (NAN, 2.0, NAN, NAN, NAN), (2.0, NAN, NAN, NAN, NAN), (NAN, 0.0, 1.0, 0.0, NAN)])
binary("quotient", "Y[i] = A[i]/B[i]", [
    (1.0, 4.0, 0.25, 0.25, -0.0625), (1e300, 1e300, 1.0, 1e-300, -1e-300), (1e-300, 1e-300, 1.0, 1e300, -1e300),
    (1e-200, 1e-100, 1e-100, 1e100, -1.0), (0.0, 2.0, 0.0, 0.5, 0.0), (1.0, 0.0, INF, INF, -INF),
    (0.0, 0.0, NAN, INF, NAN), (1.0, INF, 0.0, 0.0, 0.0), (INF, 2.0, INF, 0.5, -INF), (NAN, 1.0, NAN, 1.0, NAN)])
binary("maximum", "Y[i] = max(A[i], B[i])", [
    (1.0, 2.0, 2.0, 0.0, 1.0), (2.0, 1.0, 2.0, 1.0, 0.0), (1.0, 1.0, 1.0, 0.5, 0.5), (0.0, -0.0, 0.0, 0.5, 0.5),
    (INF, INF, INF, 0.5, 0.5), (-INF, 1.0, 1.0, 0.0, 1.0), (NAN, 1.0, NAN, 1.0, 1.0), (1.0, NAN, NAN, 1.0, 1.0)])
binary("minimum", "Y[i] = min(A[i], B[i])", [
    (1.0, 2.0, 1.0, 1.0, 0.0), (2.0, 1.0, 1.0, 0.0, 1.0), (1.0, 1.0, 1.0, 0.5, 0.5), (INF, 1.0, 1.0, 0.0, 1.0),
    (NAN, 1.0, NAN, 1.0, 1.0), (1.0, NAN, NAN, 1.0, 1.0)])


# ---- several equations
def program(name, text, fn, *operands):
    xs = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in operands]
    y = fn(*xs)
    grads = torch.autograd.grad(y.sum(), xs, create_graph=True)
    seconds = torch.autograd.grad(sum(g.sum() for g in grads), xs, allow_unused=True)
    flat = lambda t: t.detach().reshape(-1).tolist()
    case(name, text, [(tuple(x.shape), flat(x)) for x in xs], (tuple(y.shape), flat(y)),
         (tuple(y.shape), [1.0] * y.numel()),
         [(flat(g), [0.0] * x.numel() if s is None else flat(s)) for g, s, x in zip(grads, seconds, xs)])


LARGE = [[1e30, 0.0, -1e30], [1e3, 999.0, -1e3], [-1e300, -1e300, -1e300], [-INF, 1.0, 2.0], [5e-324, 0.0, 1e-30]]
def lse(x):
    """Not torch.logsumexp: its gradient exp(x - result) is 1 at three times -1e300."""
    m = x.detach().amax(1, True)
    return (x - m).exp().sum(1).log() + m[:, 0]


LSE = "m[i] max= X[i,j]; s[i] += exp(X[i,j]-stop_gradient(m[i])); "
program("log-sum-exp", LSE + "Y[i] = log(s[i]) + stop_gradient(m[i])",
        lse, LARGE)
program("log-sum-exp, through its maximum",
        "m[i] max= X[i,j]; s[i] += exp(X[i,j]-m[i]); Y[i] = log(s[i]) + m[i]", lse, LARGE[1:3])
program("softmax", LSE + "e[i,j] = exp(X[i,j]-stop_gradient(m[i]))/s[i]; Y[i] += e[i,j]*W[j]", lambda x, w: x.softmax(1) @ w,
        LARGE, [1.0, 4.0, 9.0])
program("log-softmax", LSE + "Y[i] += (X[i,j]-stop_gradient(m[i])-log(s[i]))*W[j]", lambda x, w: x.log_softmax(1) @ w,
        [r for r in LARGE if -INF not in r], [1.0, 4.0, 9.0])
program("norm of a constant row",
        "m[i] += X[i,j]/3; v[i] += (X[i,j]-m[i])*(X[i,j]-m[i])/3; Y[i] += (X[i,j]-m[i])*rsqrt(v[i]+1e-5)*W[j]",
        lambda x, w: torch.nn.functional.layer_norm(x, (3,)) @ w,
        [[2.0, 2.0, 2.0], [0.0, 0.0, 0.0], [1e-30, -1e-30, 0.0], [1e15, -1e15, 3.0]], [1.0, 4.0, 9.0])
program("squash", "n[i] += X[i,j]*X[i,j]; Y[i,j] = X[i,j]*n[i]/(1+n[i])*rsqrt(n[i]+1e-12)",
        lambda x: x * ((x * x).sum(1, True) / (1 + (x * x).sum(1, True)) * ((x * x).sum(1, True) + 1e-12).rsqrt()),
        [[0.0, 0.0], [1e-30, 1e-30], [1e10, 1e10], [3.0, 4.0]])
program("product with zeros", "Y[i] *= X[i,j]", lambda x: x.prod(1),
        [[0.0, 2.0, 3.0, 4.0, 5.0], [0.0, 0.0, 3.0, 4.0, 5.0], [1e200, 1e-200, 1e100, 1e-100, 1.0], [1.0, 2.0, 3.0, 4.0, 5.0]])


def extremum(op, rows, y, grad):
    flat = [v for row in rows for v in row]
    shape = (len(rows), len(rows[0]))
    case(f"extremum {op}", f"Y[i] {op}= X[i,j]", [(shape, flat)], ((len(rows),), y), ((len(rows),), [1.0] * len(rows)),
         [([v for row in grad for v in row], [0.0] * len(flat))])


extremum("max", [[1.0, 3.0, 2.0, 3.0], [-INF] * 4, [INF, 1.0, INF, -INF], [1.0, NAN, 2.0, 3.0], [0.0, -0.0, -1.0, -1.0]],
         [3.0, -INF, INF, NAN, 0.0],
         [[0, 0.5, 0, 0.5], [0.25] * 4, [0.5, 0, 0.5, 0], [0.25] * 4, [0.5, 0.5, 0, 0]])
extremum("min", [[1.0, 3.0, 2.0, 1.0], [1e300, -1e300, 0.0, 1.0], [1.0, NAN, 2.0, 3.0]], [1.0, -1e300, NAN],
         [[0.5, 0, 0, 0.5], [0, 1, 0, 0], [0.25] * 4])
print("end", CASES)
