#!/usr/bin/env python3
"""Random operators, and random programs in an independent reading of the notation (notation_torch.py), through `ricci run`
and `ricci grad`, first and second order, compared with PyTorch and its autograd. Not part of `make check`. Needs numpy
and torch.

usage: compare_torch.py [--ricci PROGRAM] [--count N] [--programs N] [--seed N] [--backend interp|tcc|cc]

Prints what differs, then "N passed, N failed"; exit status 1 when something failed."""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

import notation_torch

R = random.Random()


def pick(*options):
    return R.choice(options)


# Each maker gives (text, operands, function of torch tensors); operands are name -> shape, or
# name -> (shape, n) for integers below n. The result is Y.


def einsum():
    letters = "ijklmn"[: R.randint(2, 6)]
    size = {c: pick(1, 2, 3, 4, 5, 8, 9, 17) for c in letters}
    while np.prod(list(size.values())) > 60000:
        size[max(size, key=size.get)] = 2
    reads = ["".join(R.sample(letters, R.randint(1, min(4, len(letters))))) for _ in range(pick(1, 2, 2, 2, 3))]
    used = sorted(set("".join(reads)))
    out = "".join(R.sample(used, R.randint(0, len(used))))
    names = "ABC"[: len(reads)]
    op = "=" if len(out) == len(used) else "+="
    text = "Y[%s] %s %s" % (",".join(out), op, "*".join("%s[%s]" % (n, ",".join(r)) for n, r in zip(names, reads)))
    return text, {n: [size[c] for c in r] for n, r in zip(names, reads)}, lambda *x: torch.einsum(",".join(reads) + "->" + out, *x)


def conv():
    b, g, c, k = R.randint(1, 4), pick(1, 1, 1, 2, 3), R.randint(1, 9), R.randint(1, 12)
    r, s, st, d, p = R.randint(1, 4), R.randint(1, 4), R.randint(1, 3), R.randint(1, 2), R.randint(0, 3)
    h, w = d * (r - 1) + 1 + R.randint(0, 9), d * (s - 1) + 1 + R.randint(0, 9)
    ho, wo = (h + 2 * p - d * (r - 1) - 1) // st + 1, (w + 2 * p - d * (s - 1) - 1) // st + 1
    channel = "c" if g == 1 else "o/%d*%d+c" % (k, c)
    x = "X[b,%s,%d*p+%d*r-%d,%d*q+%d*s-%d]" % (channel, st, d, p, st, d, p)
    x = "(%s else 0)" % x if p else x
    bias = "z[b,o,p,q] += %s*W[o,c,r,s] where c<%d,p<%d,q<%d; Y[b,o,p,q] = %s" % (
        x, c, ho, wo, pick("z[b,o,p,q] + V[o]", "max(z[b,o,p,q] + V[o], 0)", "tanh(z[b,o,p,q]*V[o])"))
    act = (lambda z, v: z + v) if "+ V[o]" in bias and "max(" not in bias else (
        (lambda z, v: torch.relu(z + v)) if "max(" in bias else (lambda z, v: torch.tanh(z * v)))
    return bias, {"X": [b, g * c, h, w], "W": [g * k, c, r, s], "V": [g * k]}, \
        lambda x, w, v: act(F.conv2d(x, w, None, st, p, d, g), v.view(1, -1, 1, 1))


def conv_transpose():
    b, c, k, h, r, st = R.randint(1, 3), R.randint(1, 5), R.randint(1, 5), R.randint(1, 7), R.randint(1, 4), R.randint(1, 3)
    n = (h - 1) * st + r
    return "Y[b,k,%d*p+r:%d] += X[b,c,p]*W[c,k,r]" % (st, n), {"X": [b, c, h], "W": [c, k, r]}, \
        lambda x, w: F.conv_transpose1d(x, w, None, st)


def pool():
    b, c, k, st = R.randint(1, 3), R.randint(1, 9), R.randint(1, 4), R.randint(1, 3)
    p = R.randint(0, k // 2)
    h, w = k + R.randint(0, 9), k + R.randint(0, 9)
    ho, wo = (h + 2 * p - k) // st + 1, (w + 2 * p - k) // st + 1
    if R.randint(0, 1):
        body, fn = "max= X[b,c,%d*p+r-%d,%d*q+s-%d] else -1e30", lambda x: F.max_pool2d(x, k, st, p)
    else:
        body, fn = "+= (X[b,c,%d*p+r-%d,%d*q+s-%d] else 0)/" + str(float(k * k)), lambda x: F.avg_pool2d(x, k, st, p)
    return "Y[b,c,p,q] " + body % (st, p, st, p) + " where p<%d,q<%d,r<%d,s<%d" % (ho, wo, k, k), {"X": [b, c, h, w]}, fn


def softmax():
    n, m = R.randint(1, 9), R.randint(1, 40)
    last = pick("e[i,j]/s[i]", "log(e[i,j]/s[i])")
    return "m[i] max= X[i,j]; e[i,j] = exp(X[i,j]-m[i]); s[i] += e[i,j]; Y[i,j] = " + last, {"X": [n, m]}, \
        (F.log_softmax if "log" in last else F.softmax).__call__ and (
            (lambda x: F.log_softmax(x, 1)) if "log" in last else (lambda x: F.softmax(x, 1)))


def layer_norm():
    n, m = R.randint(1, 9), R.randint(4, 40)  # of two nearly equal ones little is left
    return ("a[i] += X[i,j]/%d.0; d[i,j] = X[i,j]-a[i]; v[i] += d[i,j]*d[i,j]/%d.0; "
            "Y[i,j] = d[i,j]*rsqrt(v[i]+1e-5)*G[j] + H[j]" % (m, m)), {"X": [n, m], "G": [m], "H": [m]}, \
        lambda x, g, h: F.layer_norm(x, (m,), g, h, 1e-5)


def attention():
    b, h, n, d = R.randint(1, 3), R.randint(1, 3), R.randint(1, 12), pick(1, 4, 8)
    return ("t[b,h,i,j] += Q[b,h,i,d]*K[b,h,j,d]; u[b,h,i,j] = i >= j ? t[b,h,i,j]*%r : -1e30; "
            "m[b,h,i] max= u[b,h,i,j]; e[b,h,i,j] = exp(u[b,h,i,j]-m[b,h,i]); s[b,h,i] += e[b,h,i,j]; "
            "Y[b,h,i,d] += e[b,h,i,j]/s[b,h,i]*V[b,h,j,d]" % d ** -0.5), {k: [b, h, n, d] for k in "QKV"}, \
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)


def reduction():
    n, m, k = R.randint(1, 9), R.randint(1, 12), R.randint(1, 5)
    op, fn = pick(("max=", lambda x: x.amax(1)), ("min=", lambda x: x.amin(1)), ("*=", lambda x: x.prod(1)),
                  ("+=", lambda x: x.sum(1)))
    form, g = pick(("X[i,j,k]", lambda x: x), ("X[i,j,k]*X[i,j,k]", lambda x: x * x), ("tanh(X[i,j,k])", torch.tanh),
                   ("max(X[i,j,k], 0.25)", lambda x: torch.maximum(x, torch.tensor(0.25, dtype=x.dtype))))
    return "Y[i,k] %s %s" % (op, form), {"X": [n, m, k]}, lambda x: fn(g(x))


def elementwise():
    table = [("tanh(%s)", torch.tanh), ("sigmoid(%s)", torch.sigmoid), ("exp(%s)", torch.exp), ("erf(%s)", torch.erf),
             ("sin(%s)", torch.sin), ("cos(%s)", torch.cos), ("sqrt(2.0+%s)", lambda x: torch.sqrt(2 + x)),
             ("log(2.5+%s)", lambda x: torch.log(2.5 + x)), ("log1p(0.3*%s)", lambda x: torch.log1p(.3 * x)),
             ("expm1(%s)", torch.expm1), ("rsqrt(2.0+%s)", lambda x: torch.rsqrt(2 + x)), ("abs(%s)", torch.abs),
             ("max(%s, 0)", torch.relu), ("pow(1.5+%s, 1.7)", lambda x: (1.5 + x) ** 1.7), ("tan(0.5*%s)", lambda x: torch.tan(.5 * x))]
    (t1, f1), (t2, f2), (t3, f3) = pick(*table), pick(*table), pick(*table)
    shape = [R.randint(1, 7), R.randint(1, 33)]
    bounded = "tanh(%s)" % (t1 % "A[i,j]")
    return "Y[i,j] = %s*B[j] + %s/(2.5+C[])" % (t2 % bounded, t3 % "(A[i,j]*B[j])"), {"A": shape, "B": shape[1:], "C": []}, \
        lambda a, b, c: f2(torch.tanh(f1(a))) * b + f3(a * b) / (2.5 + c)


def rearrange():
    b, c, h, w, r = R.randint(1, 3), R.randint(1, 4), R.randint(1, 6), R.randint(1, 6), R.randint(1, 3)
    return pick(
        ("Y[b,c,y,x] = X[b,c*%d+y%%%d*%d+x%%%d,y/%d,x/%d] where c<%d,y<%d,x<%d" % (r * r, r, r, r, r, r, c, h * r, w * r),
         {"X": [b, c * r * r, h, w]}, lambda x: F.pixel_shuffle(x, r)),
        ("Y[b,k,y,x] = X[b,k/%d,y*%d+k/%d%%%d,x*%d+k%%%d] where k<%d,y<%d,x<%d" % (r * r, r, r, r, r, r, c * r * r, h, w),
         {"X": [b, c, h * r, w * r]}, lambda x: F.pixel_unshuffle(x, r)),
        ("Y[b,n] = X[b,n/%d,n/%d%%%d,n%%%d] where n<%d" % (h * w, w, h, w, c * h * w), {"X": [b, c, h, w]}, lambda x: x.flatten(1)),
        ("Y[i,j] += j <= i ? X[j,k] : 0 where i<%d" % h, {"X": [h, w]}, lambda x: x.sum(1).cumsum(0).mul(1).new_zeros(h, h) + torch.tril(x.sum(1).expand(h, h))),
        ("Y[i,k] += j <= i ? X[j,k] : 0 where i<%d" % h, {"X": [h, w]}, lambda x: x.cumsum(0)))


def gather():
    n, d, k = R.randint(1, 9), R.randint(1, 6), R.randint(1, 9)
    return pick(
        ("Y[i,d] = X[T[i],d]*W[d]", {"T": ([k], n), "X": [n, d], "W": [d]}, lambda t, x, w: F.embedding(t, x) * w),
        ("Y[T[i]:%d,d] += X[i,d]*W[d]" % n, {"T": ([k], n), "X": [k, d], "W": [d]},
         lambda t, x, w: torch.zeros(n, d, dtype=x.dtype).index_add(0, t, x * w)),
        ("m[i] max= X[i,j]; s[i] += exp(X[i,j]-m[i]); Y[] += log(s[i]) + m[i] - X[i,T[i]]", {"X": [k, n], "T": ([k], n)},
         lambda x, t: F.cross_entropy(x, t, reduction="sum")))


MAKERS = [einsum, einsum, conv, conv, conv_transpose, pool, softmax, layer_norm, attention, reduction, elementwise, rearrange, gather]


def close(got, want, tol):
    if got.shape != want.shape:
        return False
    finite = np.isfinite(want)
    scale = np.abs(want[finite]).max(initial=0) + 0.1  # the data are about 1
    with np.errstate(invalid="ignore"):
        good = np.abs(got - want) <= tol * scale
    return bool(np.all(np.where(finite, good, (got == want) | np.isnan(got) & np.isnan(want))))


def derivative(y, wrt):
    got = torch.autograd.grad(y, wrt, create_graph=True, allow_unused=True) if y.requires_grad else [None] * len(wrt)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(got, wrt)]


class Judge:
    def __init__(self, ricci, backend, folder):
        self.ricci, self.folder = ricci, folder
        self.common = ["--backend", backend] if backend else []
        self.second = 0

    def save(self, name, tensor):
        path = os.path.join(self.folder, name + ".npy")
        np.save(path, tensor.detach().numpy(force=True))
        return path

    def call(self, *words):
        done = subprocess.run([self.ricci, *words, *self.common], capture_output=True, text=True)
        return done.stderr if done.returncode else ""

    def compare(self, command, text, more, want, tol):
        """Runs `ricci command`, one output for each tensor of `want`; what is wrong, or "" """
        outs = ["-o%s=%s/out_%s.npy" % (n, self.folder, n) for n in want]
        err = self.call(command, text, *more, *outs)
        if err:
            return "%s: %s\n" % (command, err)
        bad = [n for n in want if not close(np.load("%s/out_%s.npy" % (self.folder, n)), want[n].detach().numpy(force=True), tol)]
        return "%s: %s\n" % (" ".join([command] + more[len(more) - 1:]), " ".join(bad)) if bad else ""

    def judge(self, text, data, fn, dtype):
        """data: name -> tensor; fn(data): name -> result. What is wrong, or "" """
        args = ["%s=%s" % (n, self.save(n, x)) for n, x in data.items()]
        results = fn(data)
        wrong = self.compare("run", text, args, results, 2e-5 if dtype == torch.float32 else 1e-11)
        wrt = [n for n in data if data[n].requires_grad]
        floats = {n: y for n, y in results.items() if y.dtype.is_floating_point}
        if not wrt or wrong or len(floats) < len(results):
            return wrong
        seeds = {n: torch.tensor(np.random.uniform(-1, 1, y.shape), dtype=y.dtype) for n, y in floats.items()}
        args += sum((["--seed", "%s=%s" % (n, self.save("seed_" + n, s))] for n, s in seeds.items()), [])
        inputs = [data[n] for n in wrt]
        first = derivative(sum((seeds[n] * y).sum() for n, y in floats.items()), inputs)
        wrong = self.compare("grad", text, args, dict(zip(wrt, first)), 2e-5 if dtype == torch.float32 else 1e-11)
        if wrong or dtype != torch.float64:
            return wrong
        along = [torch.tensor(np.random.uniform(-1, 1, x.shape)) for x in inputs]
        try:
            second = derivative(sum((g * u).sum() for g, u in zip(first, along)), inputs)
        except (NotImplementedError, RuntimeError):  # there is no second derivative of some operators in PyTorch
            return ""
        args += sum((["--along", "%s=%s" % (n, self.save("along_" + n, u))] for n, u in zip(wrt, along)), [])
        self.second += 1
        return self.compare("grad", text, args + ["--order", "2"], dict(zip(wrt, second)), 1e-9)


def operator(dtype):
    text, operands, fn = pick(*MAKERS)()
    data = {}
    for name, shape in operands.items():
        if isinstance(shape, tuple):
            data[name] = torch.tensor(np.random.randint(0, shape[1], shape[0]), dtype=torch.int64)
        else:
            data[name] = torch.tensor(np.random.uniform(-1, 1, shape), dtype=dtype, requires_grad=True)
    return text, data, lambda d: {"Y": fn(*d.values())}


def program(lines):
    """A program as `fuzz_programs --list` prints it; None where it is not for f64 alone."""
    text = next(line[5:] for line in lines if line.startswith("text "))
    operands, data = [line.split()[1:] for line in lines if line.startswith("operand ")], {}
    other = "->" in text or "..." in text or any(line.startswith(("loop ", "after ")) for line in lines)
    if other or re.search(r"random|normal|f32|f16", text) or any(len(o) > 5 for o in operands):
        return None
    for name, kind, low, high, shape in operands:
        shape = [] if shape == "scalar" else [int(n) for n in shape.split("x")]
        if kind == "f64":
            x = np.random.uniform(-1, 1, shape)
            data[name] = torch.tensor(x + np.where(x < 0, -0.0625, 0.0625), requires_grad=True)
        elif kind in ("f32", "f16", "bf16"):
            return None
        else:
            data[name] = torch.tensor(np.random.randint(int(low), int(high) + 1, shape),
                                      dtype=notation_torch.TYPES[kind])
    if not any(x.requires_grad for x in data.values()) or re.search(r"(?:^|= )(?:[iu]\d+|bool)\(", text):
        return None
    assigned = re.findall(r"(?:^|; )(\w+)\[", text)
    unread = [n for n in assigned if len(re.findall(r"\b%s[\[.]" % n, text)) == 1]

    def fn(data):
        got = notation_torch.run(text, data)
        return {n: got[n] for n in unread}
    return text, data, fn


def programs(fuzz, seed, count):
    """Random programs from number `seed` on, without end."""
    while True:
        out = subprocess.run([fuzz, "--list", "--first", str(seed), "--count", "100"], capture_output=True, text=True)
        for part in out.stdout.strip().split("\nend by nobody"):
            lines = (part.strip() + "\nend").split("\n")
            if len(lines) > 2:
                yield lines
        seed += 100


def report(number, text, data, wrong):
    shapes = " ".join("%s=%s" % (n, "x".join(map(str, x.shape)) or "scalar") for n, x in data.items())
    print("%s: '%s' %s\n\t%s" % (number, text, shapes, wrong), flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ricci", default="tools/ricci")
    p.add_argument("--fuzz", default="tests/tools/fuzz_programs")
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--programs", type=int, default=200)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--backend")
    o = p.parse_args()
    torch.set_num_threads(1)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(o.ricci, o.backend, folder)
        for k in range(o.count):
            R.seed(o.seed + k)
            np.random.seed(o.seed + k)
            dtype = pick(torch.float32, torch.float64)
            text, data, fn = operator(dtype)
            wrong = judge.judge(text, data, fn, dtype)
            failed += bool(wrong)
            passed += not wrong
            if wrong:
                report(o.seed + k, text, data, wrong)
        source = programs(o.fuzz, o.seed, o.programs) if o.programs else ()
        for lines in source:
            np.random.seed(o.seed)
            made = program(lines)
            if not made:
                continue
            try:
                wrong = judge.judge(*made, torch.float64)
            except notation_torch.Unread:
                continue
            failed += bool(wrong)
            passed += not wrong
            if wrong:
                report(lines[0], made[0], made[1], wrong)
            if passed + failed >= o.count + o.programs:
                break
    print("second order too: %d" % judge.second)
    print("%d passed, %d failed" % (passed, failed))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
