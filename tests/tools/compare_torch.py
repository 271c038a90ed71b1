#!/usr/bin/env python3
"""Random operators through `ricci run` and `ricci grad`, compared with PyTorch's operators and
autograd. An independent judge, not part of `make check`. Needs numpy and torch.

usage: compare_torch.py [--ricci PROGRAM] [--count N] [--seed N] [--backend interp|tcc|cc]

Prints what differs, then "N passed, N failed"; exit status 1 when something failed."""

import argparse
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

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


def bound_order(text, operands):
    """Operands in the order of their first appearance, as ricci binds them."""
    return sorted(operands, key=lambda n: min(text.index(n + "["), len(text)))


def close(got, want, tol):
    if got.shape != want.shape:
        return False
    scale = np.abs(want).max(initial=0) + 1e-3
    return bool(np.all(np.abs(got - want) <= tol * scale))


def check(ricci, backend, folder, dtype):
    text, operands, fn = pick(*MAKERS)()
    data, args = {}, []
    for name, shape in operands.items():
        if isinstance(shape, tuple):
            data[name] = torch.tensor(np.random.randint(0, shape[1], shape[0]), dtype=torch.int64)
        else:
            data[name] = torch.tensor(np.random.uniform(-1, 1, shape), dtype=dtype, requires_grad=True)
        path = os.path.join(folder, name + ".npy")
        np.save(path, data[name].detach().numpy())
        args.append("%s=%s" % (name, path))
    want = fn(*data.values())
    seed = torch.tensor(np.random.uniform(-1, 1, want.shape), dtype=dtype)
    want.backward(seed)
    np.save(os.path.join(folder, "seed.npy"), seed.numpy())
    wrt = [n for n in data if data[n].requires_grad]
    # a number alone is f32: text for f64 needs none, all our numbers meet tensors
    tol = 2e-5 if dtype == torch.float32 else 1e-11
    common = ["--backend", backend] if backend else []
    calls = [["run", text, *args, *common, "-oY=" + folder + "/Y.npy"],
             ["grad", text, *args, *common, "--seed", "Y=" + folder + "/seed.npy"] + ["-o%s=%s/d%s.npy" % (n, folder, n) for n in wrt]]
    wrong = []
    for call in calls:
        done = subprocess.run([ricci, *call], capture_output=True, text=True)
        if done.returncode:
            return text, operands, "%s: status %d\n%s" % (call[0], done.returncode, done.stderr)
    if not close(np.load(folder + "/Y.npy"), want.detach().numpy(), tol):
        wrong.append("Y")
    for n in wrt:
        expected = data[n].grad if data[n].grad is not None else torch.zeros_like(data[n])
        if not close(np.load("%s/d%s.npy" % (folder, n)), expected.numpy(), tol):
            wrong.append("d" + n)
    return text, operands, " ".join(wrong)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ricci", default="tools/ricci")
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--backend")
    o = p.parse_args()
    torch.set_num_threads(1)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for k in range(o.count):
            R.seed(o.seed + k)
            np.random.seed(o.seed + k)
            dtype = pick(torch.float32, torch.float64)
            text, operands, wrong = check(o.ricci, o.backend, folder, dtype)
            if wrong:
                failed += 1
                print("%d: '%s' %s %s\n\t%s" % (o.seed + k, text, operands, dtype, wrong))
    print("%d passed, %d failed" % (o.count - failed, failed))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
