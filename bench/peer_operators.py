"""The operators of bench/operators.c in PyTorch, JAX or TVM: answers lines of JSON on standard input with one JSON line each; before, an
empty one says that it is ready.

usage: peer_operators.py --peer torch|compile|jax|tvm [--threads 2] [--seconds 0.15] [--trials 32]

A line is an operator as `operators --list` prints it, with its "mode". Several spellings and memory layouts are timed when an operator
and mode come for the first time; the answer has the fastest one's time and name, and "user_ms" where there is
a spelling that users write first. After that only these are timed again. compile is torch.compile with frozen (packed) weights in inference.
tvm is MetaSchedule's best of N trials (a minute or two for each operator); products and convolutions forward, for the rest the answer is {}.
"""
import argparse, json, os, statistics, sys, tempfile, time

TABLE = 8192  # rows that gathers and scatters take

ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
ap.add_argument("--peer", default="torch", choices=("torch", "compile", "jax", "tvm"))
ap.add_argument("--threads", type=int, default=2)
ap.add_argument("--seconds", type=float, default=0.15)
ap.add_argument("--trials", type=int, default=32, help="schedules that TVM measures for an operator")


def ungrouped(o):
    """The shapes of a convolution's operands with all groups' channels in one dimension: a kernel for each channel reads one."""
    (x, w), groups = o["shapes"], o["groups"]
    if groups > 1 and len(x) == len(w) + 1:
        return x, [w[0], 1] + w[1:]
    if groups > 1:
        return [x[0], x[1] * x[2]] + x[3:], [w[0] * w[1]] + w[2:]
    return x, w


class Sums:
    """What both spell alike."""

    def sum_rows(self, o):
        return self.moved(o, lambda x: x.sum(1))

    def sum_columns(self, o):
        return self.moved(o, lambda x: x.sum(0))

    sum_middle = sum_rows

    def sum_all(self, o):
        return self.moved(o, lambda x: x.sum())


class Novel:
    """Operators that neither has, spelled alike with the library's own; self.lib: torch or jax.numpy."""

    def einsum(self, o, text):
        return self.modes(lambda *x: self.lib.einsum(text, *x), *self.draw(o["shapes"]))

    def point_convolution(self, o):
        return self.einsum(o, "bnjc,bnjm,cmo->bno")

    def talking_heads(self, o):
        return self.einsum(o, "bhid,bhjd,hg->bgij")

    def tensor_product(self, o):
        return self.einsum(o, "mij,bui,bj,u->bum")

    def quaternion(self, o):
        return self.einsum(o, "bil,ijo,ljk->bko")

    def tucker(self, o):
        return self.einsum(o, "oij,bi,bj->bo")

    def triangle(self, o):
        return self.einsum(o, "ikc,jkc->ijc")

    def spline_layer(self, o):
        def f(x, c):
            d = x[:, :, None] - 0.25 * self.lib.arange(8)
            return self.lib.einsum("oig,big->bo", c, self.lib.exp(-d * d))
        return self.modes(f, *self.draw(o["shapes"]))

    def max_plus(self, o):
        return self.modes(lambda a, b: self.lib.amax(a[:, :, None] + b[None], 1), *self.draw(o["shapes"]))

    def l1_distances(self, o):
        return self.modes(lambda x, c: self.lib.abs(x[:, None] - c[None]).sum(-1), *self.draw(o["shapes"]))

    def long_convolution(self, o):
        n = o["shapes"][0][1]

        def f(x, h):  # the fastest known: by transforms
            fft = self.lib.fft
            return fft.irfft(fft.rfft(x, 2 * n, 1) * fft.rfft(h, 2 * n, 0)[None], 2 * n, 1)[:, :n]
        return self.modes(f, *self.draw(o["shapes"]))

    def shifts(self, x, n):
        """x moved by all places of an n x n window, padded, and stacked in front of the image."""
        h, w = x.shape[-2:]
        x = self.pad(x, n // 2)
        return self.lib.stack([x[..., i:i + h, j:j + w] for i in range(n) for j in range(n)], -3)

    def correlation(self, o):
        def f(a, b):
            return (a[:, :, None] * self.shifts(b, 9)).sum(1)
        return self.modes(f, *self.draw(o["shapes"]))

    def involution(self, o):
        def f(x, k):
            return (self.shifts(x, 7) * k.reshape(k.shape[0], k.shape[1], 1, -1, *k.shape[-2:])).sum(-3)
        return self.modes(f, *self.draw(o["shapes"]))

    def radial_basis(self, o):
        def f(x, c, g, w):
            return self.lib.exp(-g * ((x[:, None] - c[None]) ** 2).sum(-1)) @ w
        return self.modes(f, *self.draw(o["shapes"]))

    def positional(self, o):
        def f(x, w):
            e = x[:, None, :] * (2.0 ** self.lib.arange(10))[:, None]
            return self.lib.sin(e.reshape(x.shape[0], -1)) @ w
        return self.modes(f, *self.draw(o["shapes"]))

    def deformable(self, o):
        def f(p, q, x, w):
            lib, (b, c, h, n) = self.lib, x.shape
            tap, line = lib.arange(9), lib.arange(h)
            a = p + (line[:, None] + (tap // 3 - 1)[:, None, None])
            z = q + (line + (tap % 3 - 1)[:, None, None])
            s, t = lib.floor(a), lib.floor(z)
            flat, v = x.reshape(b, c, h * n), 0
            for i in range(2):
                for j in range(2):
                    y, k = s + i, t + j
                    inside = (y >= 0) & (y < h) & (k >= 0) & (k < n)
                    at = self.integers(lib.clip(y, 0, h - 1) * n + lib.clip(k, 0, n - 1))
                    part = lib.stack([flat[m][:, at[m]] for m in range(b)])
                    v = v + part * (inside * (1 - abs(a - y)) * (1 - abs(z - k)))[:, None]
            return lib.einsum("bckpq,ock->bopq", v, w)
        return self.modes(f, *self.draw(o["shapes"]))

    def indexed(self, o, f):
        """f of the operand that holds rows of a table, which has no gradient, and of the others."""
        shapes = list(o["shapes"])
        index = self.rows(shapes.pop(o["index"] - 1))
        return self.modes(lambda *x: f(index, *x), *self.draw(shapes))

    def sparse_convolution(self, o):
        def f(i, x, w):
            return x[i].reshape(i.shape[0], -1) @ w.reshape(-1, w.shape[-1])
        return self.indexed(o, f)

    def edge_convolution(self, o):
        return self.indexed(o, lambda i, x, b, a: self.lib.amax((x @ a.T)[i], 1) + x @ b.T)

    def neighbour_attention(self, o):
        def f(i, q, k, v):
            s = self.lib.einsum("nd,nkd->nk", q, k[i])
            e = self.lib.exp(s - self.lib.amax(s, 1)[:, None])
            return self.lib.einsum("nk,nkd->nd", e / e.sum(1)[:, None], v[i])
        return self.indexed(o, f)

    def hash_grid(self, o):
        def f(i, t, u):
            level = self.lib.arange(i.shape[1])[:, None]
            return (t[i, level] * u[..., None]).sum(2)
        return self.indexed(o, f)


class Torch(Sums, Novel):
    """Eager PyTorch. work(): {mode: {variant: function}}."""

    def __init__(self, args):
        import torch
        import torch.nn.functional as F
        self.torch, self.F, self.lib = torch, F, torch
        torch.set_num_threads(args.threads)
        torch.manual_seed(0)
        self.eager = args.peer == "torch"
        if not self.eager:
            import torch._inductor.config as inductor
            inductor.freezing = True

    def forget(self):
        """What was compiled for other operators, of which there may be eight of a function."""
        if not self.eager:
            self.torch.compiler.reset()

    def draw(self, shapes):
        return [self.torch.randn(s) for s in shapes]

    def rows(self, shape):
        return self.torch.randint(TABLE, shape)

    def integers(self, x):
        return x.long()

    def pad(self, x, n):
        return self.F.pad(x, (n, n, n, n))

    def deformable(self, o):
        def f(p, q, x, w):  # by the function that samples images
            torch, (b, c, h, n) = self.torch, x.shape
            tap, line = torch.arange(9), torch.arange(h)
            a = p + (line[:, None] + (tap // 3 - 1)[:, None, None])
            z = q + (line + (tap % 3 - 1)[:, None, None])
            grid = torch.stack([z * (2 / (n - 1)) - 1, a * (2 / (h - 1)) - 1], -1)
            v = self.F.grid_sample(x, grid.reshape(b, -1, n, 2), align_corners=True).reshape(b, c, 9, h, n)
            return torch.einsum("bckpq,ock->bopq", v, w)
        return self.modes(f, *self.draw(o["shapes"]))

    def wrap(self, f):
        return f if self.eager else self.torch.compile(f, dynamic=False)

    def forward(self, f, *operands):
        run = self.wrap(f)

        def forward():
            with self.torch.no_grad():
                return run(*operands)
        return forward

    def both(self, f, *operands):
        leaves, run = [t.clone().requires_grad_() for t in operands], self.wrap(f)
        seed = self.torch.randn_like(f(*operands))
        return lambda: self.torch.autograd.grad(run(*leaves), leaves, seed)

    def modes(self, f, *operands, name=""):
        return {"forward": {name: self.forward(f, *operands)}, "forward+grad": {name: self.both(f, *operands)}}

    def convolution(self, o, transposed=False):
        torch, F, groups = self.torch, self.F, o["groups"]
        x, w = (torch.randn(s) for s in o["shapes"])
        if groups > 1 and x.dim() == w.dim() + 1:  # a kernel for each channel
            w = w[:, None]
        elif groups > 1:
            x, w = x.flatten(1, 2), w.flatten(0, 1)
        d = x.dim() - 2
        numbers = dict(stride=o["stride"], padding=o["pad"], dilation=o["dilation"], groups=groups)
        f = getattr(F, f"conv{'_transpose' if transposed else ''}{d}d")
        last = {2: torch.channels_last, 3: torch.channels_last_3d}.get(d)
        out = {"forward": {}, "dx": {}, "dw": {}}
        for name, layout in (("first", torch.contiguous_format),) + ((("last", last),) if last else ()):
            xl, wl = (t.contiguous(memory_format=layout) for t in (x, w))
            if self.eager or transposed:
                out["forward"][name] = self.forward(lambda x, w: f(x, w, **numbers), xl, wl)
            else:
                module = getattr(torch.nn, f"Conv{d}d")(x.shape[1], w.shape[0], w.shape[2:], bias=False, **numbers).eval()
                out["forward"][name] = self.forward(module.to(memory_format=layout) if last else module, xl)
            if not self.eager or transposed:
                continue
            g = torch.randn_like(f(xl, wl, **numbers)).contiguous(memory_format=layout)
            for mode, mask in (("dx", [True, False, False]), ("dw", [False, True, False])):
                out[mode][name] = lambda x=xl, w=wl, g=g, mask=mask: torch.ops.aten.convolution_backward(
                    g, x, w, None, [o["stride"]] * d, [o["pad"]] * d, [o["dilation"]] * d, False, [0] * d, groups, mask)
        if self.eager and not transposed and d > 1:  # oneDNN's own layouts, weights laid out once
            from torch.utils import mkldnn
            module = getattr(torch.nn, f"Conv{d}d")(x.shape[1], w.shape[0], w.shape[2:], bias=False, **numbers).eval()
            packed, blocked = mkldnn.to_mkldnn(module), x.to_mkldnn()
            out["forward"]["blocked"] = lambda: self.no_grad(packed, blocked)
        return out

    def no_grad(self, f, *operands):
        with self.torch.no_grad():
            return f(*operands)

    def transposed(self, o):
        return self.convolution(o, True)

    def capsules(self, o):
        torch, s = self.torch, o["stride"]

        def user(x, w):
            return torch.einsum("bcpqitrs,kcrstj->bkpqij", x.unfold(2, 3, s).unfold(3, 3, s), w)

        def folded(x, w):  # as one conv2d of [(b i), (c t), h, w]
            b, c, h, _, i, t = x.shape
            x = x.permute(0, 4, 1, 5, 2, 3).reshape(b * i, c * t, h, h)
            y = self.F.conv2d(x, w.permute(0, 5, 1, 4, 2, 3).reshape(w.shape[0] * 4, -1, 3, 3), stride=s)
            return y.view(b, i, w.shape[0], 4, *y.shape[2:]).permute(0, 2, 4, 5, 1, 3).contiguous()

        operands = [torch.randn(s) for s in o["shapes"]]
        out = {"forward": {}, "forward+grad": {}}
        for name, f in (("user", user), ("conv2d", folded)):
            for mode, run in self.modes(f, *operands, name=name).items():
                out[mode].update(run)
        return out

    def product(self, o):
        torch = self.torch
        if o["type"] == "i8":
            a, b = (torch.randint(-127, 128, s).to(torch.int8) for s in o["shapes"])
            return {"forward": {"": self.forward(torch._int_mm, a, b)}}
        dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[o["type"]]
        return self.modes(torch.matmul, *(torch.randn(s).to(dtype) for s in o["shapes"]))

    def softmax(self, o):
        return self.modes(lambda x: self.torch.softmax(x, 1), *self.draw(o["shapes"]))

    def layernorm(self, o):
        return self.modes(lambda x, g, b: self.F.layer_norm(x, x.shape[1:], g, b), *self.draw(o["shapes"]))

    def function(self, o):
        return self.modes(getattr(self.torch, o["name"]), *self.draw(o["shapes"]))

    def chain(self, o):
        return self.modes(lambda x, w, b, r: self.F.gelu(x * w + b) + r, *self.draw(o["shapes"]))

    def moved(self, o, f):
        """Forward, and the gradient alone by autograd of a value that stays."""
        x = self.torch.randn(o["shapes"][0])
        leaf, run = x.clone().requires_grad_(), self.wrap(f)
        y = run(leaf)
        seed = self.torch.randn_like(y)
        return {"forward": {"": self.forward(f, x)}, "dx": {"": lambda: self.torch.autograd.grad(y, leaf, seed, retain_graph=True)}}

    def maxpool(self, o):
        return self.moved(o, lambda x: self.F.max_pool2d(x, 3, 2, 1))

    def avgpool(self, o):
        return self.moved(o, lambda x: self.F.avg_pool2d(x, 2))

    def transpose(self, o):
        return self.moved(o, lambda x: x.t().contiguous())

    def heads(self, o):
        return self.moved(o, lambda x: x.transpose(1, 2).contiguous())

    def cumsum(self, o):
        return self.moved(o, lambda x: self.torch.cumsum(x, min(x.dim() - 1, 1)))

    cumsum_middle = cumsum_line = cumsum

    def cummax(self, o):
        return self.moved(o, lambda x: self.torch.cummax(x, 1)[0])

    def gather(self, o):
        index = self.torch.randint(o["shapes"][0][0], o["shapes"][1])
        return self.moved(o, lambda e: self.F.embedding(index, e))

    def scatter(self, o):
        index, x = self.torch.randint(TABLE, o["shapes"][0]), self.torch.randn(o["shapes"][1])
        return {"forward": {"": self.forward(lambda x: self.torch.zeros(TABLE, x.shape[1]).index_add(0, index, x), x)}}


class Jax(Sums, Novel):
    """JAX, jitted; feature maps with channels last, as its users have them."""

    def __init__(self, args):
        import jax, numpy
        self.jax, self.np, self.random = jax, jax.numpy, numpy.random.default_rng(0)
        self.lib = self.np

    def forget(self):
        self.jax.clear_caches()

    def draw(self, shapes):
        return [self.np.asarray(self.random.standard_normal(s, "float32")) for s in shapes]

    def rows(self, shape):
        return self.np.asarray(self.random.integers(0, TABLE, shape, "int32"))

    def integers(self, x):
        return x.astype("int32")

    def pad(self, x, n):
        return self.np.pad(x, ((0, 0),) * (x.ndim - 2) + ((n, n), (n, n)))

    def call(self, f, *operands):
        run = self.jax.jit(f)
        return lambda: self.jax.block_until_ready(run(*operands))

    def modes(self, f, *operands, name=""):
        seed, = self.draw([self.jax.eval_shape(f, *operands).shape])

        def both(seed, *operands):
            y, back = self.jax.vjp(f, *operands)
            return y, back(seed)
        return {"forward": {name: self.call(f, *operands)}, "forward+grad": {name: self.call(both, seed, *operands)}}

    def convolution(self, o, transposed=False):
        (x, w), np, groups = ungrouped(o), self.np, o["groups"]
        if transposed:
            w = [w[1], w[0]] + w[2:]
        d, (x, w) = len(x) - 2, self.draw([[x[0]] + x[2:] + [x[1]], w[2:] + [w[1], w[0]]])
        places = {1: "W", 2: "HW", 3: "DHW"}[d]
        layout = (f"N{places}C", f"{places}IO", f"N{places}C")
        s, pad, dilation = o["stride"], o["pad"], o["dilation"]

        def f(x, w):
            if transposed:
                pads = [(w.shape[0] - 1 - pad,) * 2] * d
                return self.jax.lax.conv_general_dilated(x, w, (1,) * d, pads, lhs_dilation=(s,) * d, dimension_numbers=layout)
            return self.jax.lax.conv_general_dilated(x, w, (s,) * d, [(pad, pad)] * d, rhs_dilation=(dilation,) * d,
                                                     dimension_numbers=layout, feature_group_count=groups)

        def shifted(x, w):  # a kernel for each channel: a sum of products of shifted images
            x = np.pad(x, [(0, 0), (pad, pad), (pad, pad), (0, 0)])
            p, q = ((n - k) // s * s + 1 for n, k in zip(x.shape[1:3], w.shape))
            return sum(x[:, i:i + p:s, j:j + q:s] * w[i, j, 0] for i in range(w.shape[0]) for j in range(w.shape[1]))

        seed, = self.draw([self.jax.eval_shape(f, x, w).shape])
        out = {"forward": {"last": self.call(f, x, w)},
               "dx": {"last": self.call(lambda x, w, g: self.jax.vjp(lambda x: f(x, w), x)[1](g), x, w, seed)},
               "dw": {"last": self.call(lambda x, w, g: self.jax.vjp(lambda w: f(x, w), w)[1](g), x, w, seed)}}
        if groups == x.shape[-1] and not transposed:
            out["forward"]["shifted"] = self.call(shifted, x, w)
        return out

    def transposed(self, o):
        return self.convolution(o, True)

    def capsules(self, o):
        np, s = self.np, o["stride"]

        def places(x, w):  # a sum over the kernel's places
            p = (x.shape[2] - 3) // s * s + 1
            return sum(np.einsum("bcpqit,kctj->bkpqij", x[:, :, i:i + p:s, j:j + p:s], w[:, :, i, j])
                       for i in range(3) for j in range(3))

        def folded(x, w):
            b, c, h, _, i, t = x.shape
            y = self.jax.lax.conv_general_dilated(
                x.transpose(0, 4, 2, 3, 1, 5).reshape(b * i, h, h, c * t),
                w.transpose(2, 3, 1, 4, 0, 5).reshape(3, 3, c * t, -1), (s, s), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            return y.reshape(b, i, *y.shape[1:3], w.shape[0], 4).transpose(0, 4, 2, 3, 1, 5)

        operands, out = self.draw(o["shapes"]), {"forward": {}, "forward+grad": {}}
        for name, f in (("places", places), ("conv2d", folded)):
            for mode, run in self.modes(f, *operands, name=name).items():
                out[mode].update(run)
        return out

    def product(self, o):
        dtype = {"f32": "float32", "bf16": "bfloat16", "i8": "int8"}[o["type"]]
        out = "int32" if o["type"] == "i8" else dtype
        a, b = ((x * (99 if o["type"] == "i8" else 1)).astype(dtype) for x in self.draw(o["shapes"]))
        return {"forward": {"": self.call(lambda a, b: self.jax.lax.dot(a, b, preferred_element_type=out), a, b)}}

    def softmax(self, o):
        return self.modes(self.jax.nn.softmax, *self.draw(o["shapes"]))

    def layernorm(self, o):
        def f(x, g, b):
            centred = x - x.mean(1, keepdims=True)
            return centred * self.jax.lax.rsqrt((centred * centred).mean(1, keepdims=True) + 1e-5) * g + b
        return self.modes(f, *self.draw(o["shapes"]))

    def function(self, o):
        f = next(getattr(m, o["name"]) for m in (self.np, self.jax.lax, self.jax.nn) if hasattr(m, o["name"]))
        return self.modes(f, *self.draw(o["shapes"]))

    def chain(self, o):
        return self.modes(lambda x, w, b, r: self.jax.nn.gelu(x * w + b, approximate=False) + r, *self.draw(o["shapes"]))

    def moved(self, o, f):
        x, = self.draw(o["shapes"][:1])
        y, back = self.jax.vjp(f, x)
        return {"forward": {"": self.call(f, x)}, "dx": {"": self.call(lambda g: back(g)[0], y)}}

    def maxpool(self, o):
        return self.moved(o, lambda x: self.jax.lax.reduce_window(x, -self.np.inf, self.jax.lax.max, (1, 3, 3), (1, 2, 2),
                                                                  ((0, 0), (1, 1), (1, 1))))

    def avgpool(self, o):
        return self.moved(o, lambda x: self.jax.lax.reduce_window(x, 0., self.jax.lax.add, (1, 2, 2), (1, 2, 2), "VALID") / 4)

    def transpose(self, o):
        return self.moved(o, lambda x: x.T)

    def heads(self, o):
        return self.moved(o, lambda x: x.swapaxes(1, 2))

    def cumsum(self, o):
        return self.moved(o, lambda x: self.np.cumsum(x, min(x.ndim - 1, 1)))

    cumsum_middle = cumsum_line = cumsum

    def cummax(self, o):
        return self.moved(o, lambda x: self.jax.lax.cummax(x, 1))

    def indices(self, o):
        return self.np.asarray(self.random.integers(TABLE, size=o["shapes"][o["index"] - 1]))

    def gather(self, o):
        index = self.indices(o)
        return self.moved(o, lambda e: e[index])

    def scatter(self, o):
        index, (x,) = self.indices(o), self.draw(o["shapes"][1:])
        return {"forward": {"": self.call(lambda x: self.np.zeros((TABLE, x.shape[1])).at[index].add(x), x)}}


class Tvm:
    """TVM's own operators, tuned by MetaSchedule with its cost model; feature maps with channels first."""

    def __init__(self, args):
        import logging, numpy, tvm
        from tvm import te, topi
        from tvm.s_tir import meta_schedule
        import tvm.s_tir.tensor_intrin  # noqa: F401 (building looks it up)
        logging.disable(logging.INFO)
        self.tvm, self.te, self.nn, self.ms = tvm, te, topi.nn, meta_schedule
        self.random, self.args = numpy.random.default_rng(0), args
        cpu = tvm.target.codegen.llvm_get_system_cpu()
        self.target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": args.threads})

    def forget(self):
        """Nothing is kept from one operator to the next."""

    def builder(self):
        """Builds in this process: MetaSchedule's own starts one for each candidate, each of which parses all of TVM's intrinsics."""
        from tvm.ir.utils import derived_object
        from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder
        from tvm.s_tir.meta_schedule.builder.local_builder import default_build, default_export

        def artifact(i):
            try:
                return BuilderResult(default_export(default_build(i.mod, i.target, None)), None)
            except Exception as e:
                return BuilderResult(None, repr(e))

        @derived_object
        class Builder(PyBuilder):
            def build(self, build_inputs):
                return [artifact(i) for i in build_inputs]

        return Builder()

    def tuned(self, operands, result):
        function = self.te.create_prim_func([*operands, result])
        with tempfile.TemporaryDirectory() as folder:
            database = self.ms.tune_tir(function, target=self.target, work_dir=folder, max_trials_global=self.args.trials,
                                        num_trials_per_iter=16, num_tuning_cores=self.args.threads, builder=self.builder(), seed=1)
            schedule = self.ms.tir_integration.compile_tir(database, function, self.target)
        run = self.tvm.compile(schedule.mod, target=self.target)["main"]
        tensors = [self.tvm.runtime.tensor(self.random.standard_normal([int(n) for n in t.shape], "float32"))
                   for t in (*operands, result)]
        return {"forward": {f"ms{self.args.trials}": lambda: run(*tensors)}}

    def placeholders(self, *shapes):
        return [self.te.placeholder(s, name=n) for s, n in zip(shapes, "xw")]

    def convolution(self, o):
        (x, w), groups = ungrouped(o), o["groups"]
        each, places = 1 < groups == x[1], {1: "W", 2: "HW", 3: "DHW"}[len(x) - 2]  # each: a kernel for each channel
        x, w = self.placeholders(x, w)
        if each:
            return self.tuned((x, w), self.nn.depthwise_conv2d_nchw(x, w, o["stride"], o["pad"], o["dilation"]))
        return self.tuned((x, w), self.nn.conv(x, w, o["stride"], o["pad"], o["dilation"], groups, f"NC{places}", f"OI{places}"))

    def transposed(self, o):
        d, (x, w) = len(o["shapes"][0]) - 2, self.placeholders(*o["shapes"])
        f = {2: self.nn.conv2d_transpose_nchw, 3: self.nn.conv3d_transpose_ncdhw}[d]
        return self.tuned((x, w), f(x, w, (o["stride"],) * d, (o["pad"],) * d, "float32", (0,) * d))

    def product(self, o):
        a, b = self.placeholders(*o["shapes"])
        return self.tuned((a, b), self.nn.matmul(a, b)) if o["type"] == "f32" else {}


def timed(run, limit):
    """The median of 15 batches, ms; where one run takes longer than that many should, its time. The first may compile."""
    run()
    start, n = time.perf_counter(), 0
    run()
    if time.perf_counter() - start > 15 * max(limit, 0.1):
        return 1e3 * (time.perf_counter() - start)
    while n == 0 or time.perf_counter() - start < limit:
        if n == 0:
            start = time.perf_counter()
        run()
        n += 1
    each, batches = n // 8 + 1, []
    for _ in range(15):
        start = time.perf_counter()
        for _ in range(each):
            run()
        batches.append((time.perf_counter() - start) / each)
    return 1e3 * statistics.median(batches)


def main():
    args = ap.parse_args()
    if args.peer == "jax":
        n = args.threads
        os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'true' if n > 1 else 'false'} intra_op_parallelism_threads={n}"
    answers = sys.stdout
    sys.stdout = sys.stderr  # what the packages say
    peer = {"jax": Jax, "tvm": Tvm}.get(args.peer, Torch)(args)
    kept = (None, None, {})
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        o = json.loads(line)
        if kept[0] != o["name"]:
            peer.forget()
            kept = (o["name"], getattr(peer, o["peer"], lambda o: {})(o), {})
        runs, best = kept[1].get(o["mode"], {}), kept[2].get(o["mode"])
        times = {}
        for v, run in runs.items():
            try:
                if not best or v in (best, "user"):
                    times[v] = timed(run, args.seconds)
            except Exception as e:  # a spelling that this version can't do
                print(f"{args.peer} {o['name']} {o['mode']} {v}: {e!r:.200}", file=sys.stderr)
        answer = {}
        if times:
            best = kept[2].setdefault(o["mode"], min(times, key=times.get))
            answer = dict(ms=times[best], variant=best, **({"user_ms": times["user"]} if "user" in times else {}))
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
