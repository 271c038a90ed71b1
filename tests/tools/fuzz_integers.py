#!/usr/bin/env python3
"""fuzz_integers.py [--first N] [--count N] [--backend interp,tcc,cc] [--tool tools/ricci]

Random programs of integers with constants and data near the ends of their types, run by the program
`ricci` and judged by Python's unbounded integers: an expression is drawn as a tree, printed as text
for the one, and evaluated here for the other, each operation wrapped to its type. Nothing of the
library is used. A program is a function of its number; a failing one is printed with its operands.
Many expressions of one type go into one program, so that a run judges some dozens of them."""
import argparse, math, random, re, struct, subprocess, sys, tempfile

BITS = {"i8": 8, "u8": 8, "i32": 32, "i64": 64}


def ends(t):
    n = BITS[t]
    return (0, (1 << n) - 1) if t == "u8" else (-(1 << (n - 1)), (1 << (n - 1)) - 1)


def wrap(t, v):
    lo, hi = ends(t)
    return (v - lo) % (hi - lo + 1) + lo


def clip(t, v):
    lo, hi = ends(t)
    return min(max(v, lo), hi)


class Case:
    def __init__(self, number):
        self.r = random.Random(number)
        self.r.seed(number)
        self.type = self.r.choice(["i64", "i64", "i32", "i32", "i8", "u8"])
        self.axes = {"i": self.r.randint(1, 6), "j": self.r.randint(1, 4)}
        self.operands = {}  # name -> (type, axes, values)

    def near(self, t):
        """A number, mostly near an end of t, a part of the way there, or a power of two."""
        r, (lo, hi) = self.r, ends(t)
        how = r.randrange(6)
        if how < 2:
            v = r.randint(-9, 9)
        elif how == 2:
            v = 1 << r.randrange(BITS[t])
            v = -v if r.randrange(2) else v
        else:
            v = (hi if r.randrange(2) else lo) // r.choice([1, 1, 2, 3, 4, 7, 16])
        return clip(t, v + r.randint(-2, 2))

    def literal(self, t):
        v = self.near(t)
        if v == -(1 << 63):
            v += 1
        return str(v) if v >= 0 else "(%d)" % v, lambda e: v

    def read(self, t):
        r = self.r
        own = [n for n in self.operands if self.operands[n][0] == t]
        if own and (r.randrange(2) or len(self.operands) > 6):
            name = r.choice(own)
        else:
            name = chr(ord("A") + len(self.operands))
            axes = r.choice(["i", "j", "ij"])
            n = math.prod(self.axes[a] for a in axes)
            self.operands[name] = (t, axes, [self.near(t) for _ in range(n)])
        _, axes, values = self.operands[name]
        shape = [self.axes[a] for a in axes]

        def value(e):
            at = 0
            for a, n in zip(axes, shape):
                at = at * n + e[a]
            return values[at]

        return "%s[%s]" % (name, ",".join(axes)), value

    def index(self):
        """Index names as a number of i64."""
        a = self.r.choice("ij")
        k, c = self.near("i64"), self.near("i64")
        how = self.r.randrange(4)
        if how == 0 or k == -(1 << 63) or c == -(1 << 63):
            return "i64(%s)" % a, lambda e: e[a]
        if how == 1:
            return "i64(%s*%d)" % (a, k), lambda e: wrap("i64", e[a] * k)
        return "i64(%s*%d + %d)" % (a, k, c), lambda e: wrap("i64", wrap("i64", e[a] * k) + c)

    def divided(self, t, depth):
        x, f = self.expr(t, depth - 1)
        c = abs(self.near(t)) if self.r.randrange(2) else self.r.randint(1, 20)
        c = min(max(c, 1), ends(t)[1])
        if self.r.randrange(2):
            return "(%s / %d)" % (x, c), lambda e: f(e) // c
        return "(%s %% %d)" % (x, c), lambda e: f(e) % c

    def condition(self, depth):
        r = self.r
        if depth > 0 and r.randrange(4) == 0:
            (x, f), (y, g) = self.condition(depth - 1), self.condition(depth - 1)
            if r.randrange(2):
                return "(%s && %s)" % (x, y), lambda e: f(e) and g(e)
            return "(%s || %s)" % (x, y), lambda e: f(e) or g(e)
        t = r.choice([self.type, "i64", "i32"])
        x, f = self.expr(t, depth - 1)
        y, g = self.expr(t, depth - 1)
        op, h = r.choice([("<", lambda a, b: a < b), ("<=", lambda a, b: a <= b),
                          (">", lambda a, b: a > b), (">=", lambda a, b: a >= b),
                          ("==", lambda a, b: a == b), ("!=", lambda a, b: a != b)])
        return "(%s %s %s)" % (x, op, y), lambda e: h(f(e), g(e))

    def expr(self, t, depth):
        r = self.r
        how = r.randrange(14) if depth > 0 else r.randrange(2)
        if how == 0 and depth > 0 or how == 0 and r.randrange(3):
            # never numbers alone: those are checked against their type where they stand
            return self.literal(t) if self.beside else self.read(t)
        if how == 1:
            return self.index() if t == "i64" and r.randrange(3) == 0 else self.read(t)
        if how < 8:
            keep, self.beside = self.beside, False
            x, f = self.expr(t, depth - 1)
            self.beside = True
            y, g = self.expr(t, depth - 1)
            self.beside = keep
            op = r.choice(["+", "-", "*", "*"])
            if r.randrange(2):
                x, f, y, g = y, g, x, f
            h = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}[op]
            return "(%s %s %s)" % (x, op, y), lambda e: wrap(t, h(f(e), g(e)))
        keep, self.beside = self.beside, False
        try:
            if how == 8 or how == 9:
                return self.divided(t, depth)
            if how == 10:
                x, f = self.expr(t, depth - 1)
                self.beside = True
                y, g = self.expr(t, depth - 1)
                h = r.choice([min, max])
                return "%s(%s, %s)" % (h.__name__, x, y), lambda e: h(f(e), g(e))
            if how == 11:
                x, f = self.expr(t, depth - 1)
                name = r.choice(["abs", "sign", "-"])
                h = {"abs": lambda a: wrap(t, abs(a)), "sign": lambda a: (a > 0) - (a < 0),
                     "-": lambda a: wrap(t, -a)}[name]
                return "%s(%s)" % (name, x), lambda e: h(f(e))
            if how == 12:
                c, p = self.condition(depth - 1)
                x, f = self.expr(t, depth - 1)
                self.beside = True
                y, g = self.expr(t, depth - 1)
                return "(%s ? %s : %s)" % (c, x, y), lambda e: f(e) if p(e) else g(e)
            other = r.choice([x for x in BITS if x != t])
            x, f = self.expr(other, depth - 1)
            return "%s(%s)" % (t, x), lambda e: clip(t, f(e))
        finally:
            self.beside = keep

    def equation(self):
        self.beside = False
        x, f = self.expr(self.type, self.r.randint(1, 5))
        sign = self.r.choice(["=", "=", "=", "+=", "*=", "max=", "min="])
        t = self.type
        if "j" not in re.findall(r"[ij]", re.sub(r"[a-z]+\(|i\d+", "", x)):
            sign = "="  # a name that occurs in `where` only is an error
        n, m = self.axes["i"], self.axes["j"]
        rows = [[f({"i": i, "j": j}) for j in range(m)] for i in range(n)]
        if sign == "=":
            left, value = "[i,j]", [v for row in rows for v in row]
        else:
            left, value = "[i]", []
            for row in rows:
                a = {"+=": 0, "*=": 1, "max=": ends(t)[0], "min=": ends(t)[1]}[sign]
                for v in row:
                    a = {"+=": wrap(t, a + v), "*=": wrap(t, a * v), "max=": max(a, v),
                         "min=": min(a, v)}[sign]
                value.append(clip(self.type, a))
        return "Y%s %s %s(%s)" % (left, sign, self.type, x), value


def npy(path, t, shape, values):
    code = {"i8": "|i1", "u8": "|u1", "i32": "<i4", "i64": "<i8"}[t]
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (
        code, "".join("%d," % n for n in shape))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    data = struct.pack("<%d%s" % (len(values), {"i8": "b", "u8": "B", "i32": "i", "i64": "q"}[t]),
                       *values)
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


def npy_read(path, t):
    b = open(path, "rb").read()
    at = 10 + struct.unpack("<H", b[8:10])[0]
    return [x[0] for x in struct.iter_unpack("<" + {"i8": "b", "u8": "B", "i32": "i",
                                                    "i64": "q"}[t], b[at:])]


def run(case, equations, tool, backend, folder):
    """None where all is right, else what is wrong."""
    texts = [e[0].replace("Y", "Y%d" % k, 1) + " where i<%d, j<%d" % (
        case.axes["i"], case.axes["j"]) for k, e in enumerate(equations)]
    args = [tool, "run", "; ".join(texts), "--backend", backend]
    used = [n for n in case.operands if any(n + "[" in x for x in texts)]
    for name in used:
        t, axes, values = case.operands[name]
        npy(folder + "/%s.npy" % name, t, [case.axes[a] for a in axes], values)
        args.append("%s=%s/%s.npy" % (name, folder, name))
    for k in range(len(equations)):
        args += ["-o", "Y%d=%s/Y%d.npy" % (k, folder, k)]
    p = subprocess.run(args, capture_output=True, text=True, timeout=300)
    told = "\n".join(["  " + "; ".join(texts)] + ["  %s %s = %s" % (n, case.operands[n][0], case.operands[n][2])
                                                   for n in used])
    if p.returncode:
        return "status %d: %s\n%s" % (p.returncode, p.stderr.strip(), told)
    for k, e in enumerate(equations):
        got = npy_read(folder + "/Y%d.npy" % k, case.type)
        if got != e[1]:
            return "Y%d is %s, should be %s\n%s" % (k, got, e[1], told)
    return None


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--first", type=int, default=0)
    a.add_argument("--count", type=int, default=100)
    a.add_argument("--equations", type=int, default=8)
    a.add_argument("--backend", default="interp,tcc")
    a.add_argument("--tool", default="tools/ricci")
    a.add_argument("--failures", type=int, default=10)
    o = a.parse_args()
    failed = judged = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(o.first, o.first + o.count):
            case = Case(number)
            equations = [case.equation() for _ in range(o.equations)]
            for backend in o.backend.split(","):
                wrong = run(case, equations, o.tool, backend, folder)
                judged += len(equations)
                if not wrong:
                    continue
                for e in equations:  # which one?
                    one = run(case, [e], o.tool, backend, folder)
                    if one:
                        wrong = one
                        break
                failed += 1
                print("program %d on %s: %s" % (number, backend, wrong), flush=True)
            if failed >= o.failures:
                break
    print("%d expressions judged, %d programs failed" % (judged, failed))
    return 1 if failed else 0


sys.exit(main())
