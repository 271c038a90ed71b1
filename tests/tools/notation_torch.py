"""The notation of docs/notation.md in PyTorch: a program's results as functions of tensors that autograd differentiates.

    run(text, operands)      operands: name -> tensor; gives name -> tensor of everything assigned

An independent reading of the notation for tests: whole grids at once, one dimension for each index. Accesses are
taken to be valid (they are clamped, so that the branch not taken does no harm). Unread: random and normal, signatures, "...",
known integers, and ranges that come of other accesses than by the bare index."""

import re

import torch

TOKEN = re.compile(r"\s*(\d+\.\d+(?:e[-+]?\d+)?|\d+|\w+|\.\.|&&|\|\||[<>=!]=|[-+*]=|\S)")
LEVELS = [["||"], ["&&"], ["==", "!="], ["<", "<=", ">", ">="], ["+", "-"], ["*", "/", "%"]]
TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8,
         "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool}
CALLS = {name: getattr(torch, name) for name in
         "exp log log1p expm1 sqrt rsqrt sin cos tan tanh sigmoid erf abs sign floor ceil round pow".split()}
CALLS.update(stop_gradient=lambda x: x.detach(), min=torch.minimum, max=torch.maximum)


class Unread(Exception):
    """What this reading leaves out."""


def start(op, dtype):
    """What a reduction starts from."""
    if op in ("+", "*"):
        return torch.tensor(op == "*", dtype=dtype)
    if dtype == torch.bool:
        return torch.tensor(op == "min")
    limits = (-torch.inf, torch.inf) if dtype.is_floating_point else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return torch.tensor(limits[op == "min"], dtype=dtype)


class Parser:
    """Text to nested tuples: ("num", v) ("name", s) ("read", name, indices) ("call", f, args) (operator, a, b)..."""

    def __init__(self, text):
        self.tokens, self.at = TOKEN.findall(text) + ["<end>"], 0

    def peek(self):
        return self.tokens[self.at]

    def take(self, *wanted):
        if wanted and self.peek() not in wanted:
            return None
        self.at += 1
        return self.tokens[self.at - 1]

    def need(self, token):
        if not self.take(token):
            raise SyntaxError("%s instead of %s in %s" % (self.peek(), token, " ".join(self.tokens)))

    def program(self):
        equations = []
        while self.peek() != "<end>":
            equations.append(self.equation())
            self.take(";")
        return equations

    def equation(self):
        name, left, ranges = self.take(), [], []
        self.need("[")
        while not self.take("]"):
            e = self.expr()
            left.append((e, self.expr() if self.take(":") else None))
            self.take(",")
        op = self.take()
        if op in ("max", "min"):
            self.need("=")
        op = {"=": None, "+=": "+", "*=": "*"}.get(op, op)
        body = self.expr()
        if self.take("where"):
            while True:
                axis = self.take()
                if self.take("<"):
                    ranges.append((axis, ("num", 0), self.binary(4)))
                else:
                    self.need("in")
                    low = self.binary(4)
                    self.need("..")
                    ranges.append((axis, low, self.binary(4)))
                if not self.take(","):
                    break
        return name, left, op, body, ranges

    def expr(self):
        c = self.binary(0)
        if not self.take("?"):
            return c
        a = self.expr()
        self.need(":")
        return "?", c, a, self.expr()

    def binary(self, level):
        if level == len(LEVELS):
            return self.unary()
        a = self.binary(level + 1)
        while self.peek() in LEVELS[level]:
            op = self.take()
            a = op, a, self.binary(level + 1)
        return a

    def unary(self):
        if self.take("-"):
            return "-", ("num", 0), self.unary()
        if self.take("!"):
            return "!", self.unary()
        return self.operand()

    def list(self, end):
        out = []
        while not self.take(end):
            out.append(self.expr())
            self.take(",")
        return out

    def operand(self):
        t = self.take()
        if t == "(":
            e = self.expr()
            self.need(")")
            return e
        if t[0].isdigit():
            return "num", float(t) if "." in t else int(t)
        if self.take("["):
            read = "read", t, self.list("]")
            return ("else", read, self.unary()) if self.take("else") else read
        if self.take("."):
            self.need("size")
            self.need("(")
            return "size", t, self.list(")")[0][1]
        if self.take("("):
            return "call", t, self.list(")")
        return "name", t


class Equation:
    def __init__(self, parsed, tensors):
        self.name, self.left, self.op, self.body, self.ranges = parsed
        self.tensors, self.axes, self.index = tensors, {}, False

    def names(self, e, found):
        """The indices in e, in order of appearance, each with the extents of the dimensions where it stands bare."""
        if e[0] == "name":
            found.setdefault(e[1], set())
        elif e[0] == "read":
            for d, i in enumerate(e[2]):
                self.names(i, found)
                if i[0] == "name":
                    found[i[1]].add(self.tensors[e[1]].shape[d])
        elif e[0] not in ("num", "size"):
            for part in e[1:]:
                for sub in part if isinstance(part, list) else [part]:
                    if isinstance(sub, tuple):
                        self.names(sub, found)
        return found

    def grid(self):
        found = {}
        for e, _ in self.left:
            self.names(e, found)
        self.names(self.body, found)
        order, bounds, inside = list(found), {}, torch.tensor(True)
        late = []
        for axis, low, high in self.ranges:
            used = self.names(high, {})
            bounds[axis] = (0, None) if used else (int(self.index_value(low)), int(self.index_value(high)))
            if used:
                late.append((axis, high))
        for a, extents in found.items():
            if a not in bounds:
                if not extents:
                    raise Unread("the range of %s" % a)
                bounds[a] = 0, extents.pop()
                if extents:
                    raise ValueError("the range of %s is ambiguous" % a)
        for k, a in enumerate(order):
            shape = [1] * len(order)
            shape[k] = -1
            if bounds[a][1] is None:  # k < i+1: as far as the greatest
                high = next(h for axis, h in late if axis == a)
                bounds[a] = (0, int(self.index_value(high).max()))
            self.axes[a] = torch.arange(*bounds[a]).reshape(shape)
        for axis, high in late:
            inside = inside & (self.axes[axis] < self.index_value(high))
        self.inside = inside
        self.shape = [bounds[a][1] - bounds[a][0] for a in order]
        return order

    def value(self, e):
        kind = e[0]
        if kind == "num":
            return torch.tensor(e[1], dtype=torch.float64 if isinstance(e[1], float) else torch.int64)
        if kind == "name":
            return self.axes[e[1]]
        if kind == "size":
            return torch.tensor(self.tensors[e[1]].shape[e[2]])
        if kind == "read":
            return self.read(e)[0]
        if kind == "else":
            x, inside = self.read(e[1])
            return torch.where(inside, x, self.value(e[2]).to(x.dtype))
        if kind == "call":
            return self.call(e[1], [(self.outside if e[1] in TYPES else self.value)(a) for a in e[2]])
        if kind == "?":
            a, b = self.together(self.value(e[2]), self.value(e[3]))
            return torch.where(self.outside(e[1]).bool(), a, b)
        if kind == "!":
            return ~self.outside(e[1]).bool()
        if kind in ("&&", "||", "<", "<=", ">", ">=", "==", "!="):
            return self.binary(kind, self.outside(e[1]), self.outside(e[2]))
        a, b = self.value(e[1]), self.value(e[2])
        if kind == "/" and not self.index and self.number(e[1]) and self.number(e[2]):
            a, b = a.double(), b.double()
        return self.binary(kind, a, b)

    def index_value(self, e):
        """The value of an index expression, in which quotients of numbers are integers."""
        was, self.index = self.index, True
        v = self.value(e)
        self.index = was
        return v

    def outside(self, e):
        was, self.index = self.index, False
        v = self.value(e)
        self.index = was
        return v

    def number(self, e):
        """Is e made of integers, sizes and comparisons alone?"""
        if e[0] in ("num", "size"):
            return isinstance(e[-1], int)
        if e[0] in ("<", "<=", ">", ">=", "==", "!=", "&&", "||", "!"):
            return True
        if e[0] == "call":
            return e[1] in ("abs", "sign", "min", "max", "floor", "ceil", "round", "stop_gradient") and all(map(self.number, e[2]))
        return e[0] in ("?", "+", "-", "*", "%") and all(map(self.number, e[2:] if e[0] == "?" else e[1:]))

    @staticmethod
    def together(a, b):
        t = torch.promote_types(a.dtype, b.dtype)
        return a.to(t), b.to(t)

    def binary(self, op, a, b):
        if op in ("&&", "||"):
            return a.bool() & b.bool() if op == "&&" else a.bool() | b.bool()
        a, b = self.together(a, b)
        if op == "/":
            return a / b if a.dtype.is_floating_point else torch.div(a, b, rounding_mode="floor")
        table = {"+": torch.add, "-": torch.sub, "*": torch.mul, "%": torch.remainder, "<": torch.lt, "<=": torch.le,
                 ">": torch.gt, ">=": torch.ge, "==": torch.eq, "!=": torch.ne}
        return table[op](a, b)

    def call(self, name, args):
        if name in TYPES:
            x, t = args[0], TYPES[name]
            if x.dtype.is_floating_point and not t.is_floating_point and t != torch.bool:
                x = x.trunc()
            return x.to(t)
        return CALLS[name](*(self.together(*args) if len(args) == 2 else args))

    def read(self, e):
        x, inside, at = self.tensors[e[1]], torch.tensor(True), []
        for d, i in enumerate(e[2]):
            i = self.index_value(i).long()
            inside = inside & (i >= 0) & (i < x.shape[d])
            at.append(i.clamp(0, x.shape[d] - 1))
        return (x[tuple(at)] if at else x), inside

    def result(self):
        order = self.grid()
        body = self.value(self.body)
        if self.op:
            body = torch.where(self.inside, body, start(self.op, body.dtype))
        body = body.expand(self.shape)
        left = [e[1] if e[0] == "name" and not extent else None for e, extent in self.left]
        if all(left) and len(set(left)) == len(left):
            body = body.permute([order.index(a) for a in left] + [k for k, a in enumerate(order) if a not in left])
            return self.reduce(body.reshape([body.shape[k] for k in range(len(left))] + [-1]))
        return self.scatter(body)

    def reduce(self, body):
        if self.op == "+" or not self.op:
            return body.sum(-1)
        return {"*": body.prod, "max": body.amax, "min": body.amin}[self.op](-1)

    def scatter(self, body):
        shape, at = [], torch.tensor(0)
        for e, extent in self.left:
            i = self.index_value(e).long()
            n = int(self.index_value(extent)) if extent else len(self.axes[e[1]].reshape(-1))
            at = at * n + i
            shape.append(n)
        size = 1
        for n in shape:
            size *= n
        out = start(self.op, body.dtype).repeat(size)
        at, src = at.expand(self.shape).reshape(-1), body.reshape(-1)
        if self.op == "+":
            return out.index_add(0, at, src).reshape(shape)
        how = {"max": "amax", "min": "amin", "*": "prod"}[self.op]
        return out.scatter_reduce(0, at, src, how).reshape(shape)


def run(text, operands):
    tensors = dict(operands)
    results = {}
    for parsed in Parser(text).program():
        tensors[parsed[0]] = results[parsed[0]] = Equation(parsed, tensors).result()
    return results
