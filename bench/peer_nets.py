#!/usr/bin/env python3
"""The examples' networks for PyTorch and JAX, at the shapes of their --bench: times one of them and prints one JSON line.

usage: peer_nets.py --peer torch|compile|jax --net NAME [--variant NAME] [--threads 2] [--seconds 2] [--device cpu] [--start T]
       peer_nets.py --peer .. --net NAME --loss      the first step's loss and the mean size of the outputs instead
       peer_nets.py --peer .. --net NAME --curve FILE.csv [--seconds 60] [--start T]     when each step ended since T, and its ms
       peer_nets.py --list                           {net: {peer: [variant, ..]}}

A network is its parameters and a function written over a few operations, which bench/peer_torch.py and bench/peer_jax.py spell as users of
each would. Plain SGD; batch norm uses the batch's statistics in training (running ones are not kept) and fixed ones in inference. step_ms
and infer_ms are medians, first_s is the time from --start to the end of the first training step, peak_mb the memory up to the end of training.
"""
import time

START = time.time()
import argparse, json, math, resource, statistics

import numpy as np

RATE, LEAST = 1e-3, 5


class Parameters(dict):
    """Arrays by name: `_w` of 2 or 4 axes are [out, in] and OIHW, `_c` biases, the others of a norm."""

    def __init__(self):
        super().__init__()
        self.random = np.random.default_rng(0)

    def normal(self, name, fan, *shape):
        self[name] = self.random.standard_normal(shape, np.float32) / np.float32(math.sqrt(fan))

    def conv(self, name, i, o, k, groups=1, bias=False):
        self.normal(name + "_w", i // groups * k * k / 2, o, i // groups, k, k)
        if bias:
            self[name + "_c"] = np.zeros(o, np.float32)
        else:
            for part, value in (("_g", 1), ("_b", 0), ("_mean", 0), ("_var", 1)):
                self[name + part] = np.full(o, value, np.float32)

    def linear(self, name, i, o, bias=True):
        self.normal(name + "_w", i, o, i)
        if bias:
            self[name + "_c"] = np.zeros(o, np.float32)

    def layer_norm(self, name, n):
        self[name + "_g"], self[name + "_b"] = np.ones(n, np.float32), np.zeros(n, np.float32)


def conv_norm(o, p, training):
    return lambda x, k, stride=1, pad=0, groups=1: o.norm(o.conv(x, p, k, stride, pad, groups), p, k, training)


class Net:
    def constants(self, o):
        """Makes what is no parameter, before the first step."""


class Images(Net):
    """Nets that name what is in an image."""
    variants = {"torch": ["nchw", "nhwc"], "compile": ["nhwc"], "jax": ["nhwc"]}
    batch, channels, side, classes = 16, 3, 32, 10

    def data(self, random):
        x = random.standard_normal((self.batch, self.channels, self.side, self.side), np.float32)
        return x, random.integers(0, self.classes, self.batch)

    def loss(self, o, out, y):
        return o.cross_entropy(out, y)


class ResNet(Images):
    """He, Zhang, Ren, Sun 2016: 18 layers for 32 x 32, or 50 for 224 x 224 with the stride in the 3x3."""

    def __init__(self, deep):
        self.deep, self.blocks, c = deep, [], 64
        if deep:
            self.batch, self.side, self.classes = 1, 224, 1000
        for stage, count in enumerate((3, 4, 6, 3) if deep else (2, 2, 2, 2)):
            for n in range(count):
                width, stride = 64 << stage, 2 if stage and not n else 1
                out = width * (4 if deep else 1)
                convs = [(1, 1, width), (3, stride, width), (1, 1, out)] if deep else [(3, stride, out), (3, 1, out)]
                self.blocks.append((f"s{stage}b{n}", c, convs, stride))
                c = out
        self.width = c

    def parameters(self, p):
        p.conv("stem", self.channels, 64, 7 if self.deep else 3)
        for name, c, convs, stride in self.blocks:
            i = c
            for n, (kernel, _, out) in enumerate(convs):
                p.conv(f"{name}c{n}", i, out, kernel)
                i = out
            if stride > 1 or i != c:
                p.conv(name + "d", c, i, 1)
        p.linear("head", self.width, self.classes)

    def output(self, o, p, x, training):
        layer = conv_norm(o, p, training)
        x = o.relu(layer(x, "stem", 2, 3) if self.deep else layer(x, "stem", 1, 1))
        if self.deep:
            x = o.max_pool(x)
        for name, c, convs, stride in self.blocks:
            y = x
            for n, (kernel, s, out) in enumerate(convs):
                y = layer(o.relu(y) if n else y, f"{name}c{n}", s, kernel // 2)
            x = o.relu(y + (layer(x, name + "d", stride) if stride > 1 or out != c else x))
        return o.linear(o.global_mean(x), p, "head")


class MobileNetV2(Images):
    """Sandler et al. 2018, table 2; strides for images of 32 x 32."""
    variants = dict(Images.variants, jax=["nhwc", "nhwc_split"])

    def __init__(self):
        self.blocks, c = [], 32
        for t, out, n, s in ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
            for i in range(n):
                self.blocks.append((f"b{len(self.blocks)}", c, c * t, out, 1 if i else s))
                c = out

    def parameters(self, p):
        p.conv("stem", 3, 32, 3)
        for name, c, inner, out, _ in self.blocks:
            if inner != c:
                p.conv(name + "e", c, inner, 1)
            p.conv(name + "d", inner, inner, 3, inner)
            p.conv(name + "p", inner, out, 1)
        p.conv("last", 320, 1280, 1)
        p.linear("head", 1280, 10)

    def output(self, o, p, x, training):
        layer = conv_norm(o, p, training)
        x = o.relu6(layer(x, "stem", 1, 1))
        for name, c, inner, out, stride in self.blocks:
            y = o.relu6(layer(x, name + "e")) if inner != c else x
            y = o.relu6(layer(y, name + "d", stride, 1, inner))
            y = layer(y, name + "p")
            x = x + y if stride == 1 and c == out else y
        return o.linear(o.global_mean(o.relu6(layer(x, "last"))), p, "head")


class ShuffleNet(Images):
    """Zhang, Zhou, Lin, Sun 2018, table 1 with 3 groups; a stem of stride 1 without pooling."""
    variants = MobileNetV2.variants

    def __init__(self):
        self.units, c = [], 24
        for stage, (out, n) in enumerate(((240, 4), (480, 8), (960, 4))):
            for i in range(n):
                self.units.append((f"s{stage}u{i}", c, out // 4, out if i else out - c, 1 if i else 2, 3 if stage or i else 1))
                c = out

    def parameters(self, p):
        p.conv("stem", 3, 24, 3)
        for name, c, inner, out, _, groups in self.units:
            p.conv(name + "a", c, inner, 1, groups)
            p.conv(name + "d", inner, inner, 3, inner)
            p.conv(name + "b", inner, out, 1, 3)
        p.linear("head", 960, 10)

    def output(self, o, p, x, training):
        layer = conv_norm(o, p, training)
        x = o.relu(layer(x, "stem", 1, 1))
        for name, _, inner, _, stride, groups in self.units:
            y = o.shuffle(o.relu(layer(x, name + "a", 1, 0, groups)), 3)
            y = layer(layer(y, name + "d", stride, 1, inner), name + "b", 1, 0, 3)
            x = o.relu(o.concat([o.avg_pool(x), y]) if stride == 2 else x + y)
        return o.linear(o.global_mean(x), p, "head")


class CapsNet(Images):
    """Capsule convolutions of poses 4 x 4 (Hinton, Sabour, Frosst 2018), dynamic routing and margin loss (Sabour, Frosst, Hinton 2017)."""
    variants = {"torch": ["conv2d", "conv2d_nhwc", "user"], "compile": ["conv2d_nhwc"], "jax": ["conv2d"]}
    batch, channels, side = 32, 1, 28

    def parameters(self, p):
        p.conv("stem", 1, 64, 5, bias=True)
        p.conv("primary", 64, 256, 1, bias=True)
        p.normal("caps1", 16 * 36, 32, 16, 3, 3, 4, 4)
        p.normal("caps2", 32 * 36, 32, 32, 3, 3, 4, 4)
        p.normal("votes", 4, 512, 10, 4, 4)

    def output(self, o, p, x, training):
        def squash(v, axes):
            n2 = (v * v).sum(axes, keepdims=True)
            return v * (n2 / (1 + n2) * o.rsqrt(n2 + 1e-7))

        x = o.conv(o.relu(o.conv(x, p, "stem", 2, 2)), p, "primary")
        poses = o.capsules(x, ((p["caps1"], 2), (p["caps2"], 1)), squash)
        votes = o.einsum("bnit,nmtj->bnmij", poses, p["votes"]).reshape(self.batch, 512, 10, 16)
        logits = o.zeros(self.batch, 512, 10)
        for routing in range(3):
            v = squash((o.softmax(logits, 2)[..., None] * votes).sum(1), -1)
            if routing < 2:
                logits = logits + (votes * v[:, None]).sum(-1)
        return v

    def loss(self, o, out, y):
        n, t = ((out * out).sum(-1) + 1e-7) ** 0.5, o.one_hot(y, 10)
        return (t * o.relu(0.9 - n) ** 2 + 0.5 * (1 - t) * o.relu(n - 0.1) ** 2).sum(1).mean()


class Recurrent(Net):
    """A cell over 16 steps of 16 vectors of 1024; the products of all steps' inputs are taken before the loop."""
    variants = {"torch": ["hoist"], "compile": ["hoist"], "jax": ["scan"]}
    steps, batch, inputs, hidden, gates, second = 16, 16, 1024, 1024, 4, 1024  # second: of the second state

    def data(self, random):
        return tuple(random.standard_normal((self.steps, self.batch, n), np.float32) for n in (self.inputs, self.hidden))

    def parameters(self, p):
        p.linear("x", self.inputs, self.gates * self.hidden)
        p.normal("x_c", 4, self.gates * self.hidden)  # with zeros mi_lstm would stay at zero
        p.linear("h", self.hidden, self.gates * self.hidden, bias=False)

    def project(self, o, p, x):
        return (o.linear(x, p, "x"),)

    def states(self, o, p, x):
        zero = o.zeros(self.batch, self.hidden), o.zeros(self.batch, self.second)
        return o.scan(lambda state, wx: self.cell(o, p, *state, *wx), zero, self.project(o, p, x))

    def output(self, o, p, x, training):
        return self.states(o, p, x)[0]

    def loss(self, o, out, y):
        return o.mse(out, y)


class MiLstm(Recurrent):
    """Wu et al. 2016, equation 2: the input's and the state's products are multiplied."""

    def project(self, o, p, x):
        return (o.linear(x, {"x_w": p["x_w"]}, "x"),)

    def cell(self, o, p, h, c, wx):
        i, f, g, out = o.split(wx * o.linear(h, p, "h") + p["x_c"], 4)
        c = o.sigmoid(f) * c + o.sigmoid(i) * o.tanh(g)
        return o.sigmoid(out) * o.tanh(c), c


class SubLstm(Recurrent):
    """Costa et al. 2017: gates are subtracted."""

    def cell(self, o, p, h, c, wx):
        i, f, z, out = o.split(o.sigmoid(wx + o.linear(h, p, "h")), 4)
        c = f * c + z - i
        return o.sigmoid(c) - out, c


class Lltm(Recurrent):
    """The cell of PyTorch's tutorial on C++ extensions: no forget gate."""
    gates = 3

    def cell(self, o, p, h, c, wx):
        i, out, g = o.split(wx + o.linear(h, p, "h"), 3)
        c = c + o.elu(g) * o.sigmoid(i)
        return o.tanh(c) * o.sigmoid(out), c


class Scrn(Recurrent):
    """Mikolov et al. 2014: a slow context beside the state."""
    gates, second, slow = 1, 256, 0.95

    def parameters(self, p):
        super().parameters(p)
        p.linear("ctx", self.inputs, self.second, bias=False)
        p.linear("p", self.second, self.hidden, bias=False)
        p.linear("u", self.hidden, self.hidden)
        p.linear("v", self.second, self.hidden, bias=False)

    def project(self, o, p, x):
        return o.linear(x, p, "x"), o.linear(x, p, "ctx")

    def cell(self, o, p, h, s, wx, ctx):
        s = (1 - self.slow) * ctx + self.slow * s
        return o.sigmoid(o.linear(s, p, "p") + wx + o.linear(h, p, "h")), s

    def output(self, o, p, x, training):
        h, s = self.states(o, p, x)
        return o.linear(h, p, "u") + o.linear(s, p, "v")


class Lstm(Recurrent):
    """Reads digits by rows. Variant nn: PyTorch's kernels of torch.nn.LSTM."""
    variants = {"torch": ["nn", "hoist"], "compile": ["hoist"], "jax": ["scan"]}
    steps, batch, inputs, hidden, second = 28, 64, 28, 128, 128

    def data(self, random):
        return random.standard_normal((self.batch, self.steps, self.inputs), np.float32), random.integers(0, 10, self.batch)

    def parameters(self, p):
        super().parameters(p)
        p.linear("head", self.hidden, 10)

    def cell(self, o, p, h, c, wx):
        i, f, g, out = o.split(wx + o.linear(h, p, "h"), 4)
        c = o.sigmoid(i) * o.tanh(g) + o.sigmoid(f + 1) * c
        return o.sigmoid(out) * o.tanh(c), c

    def output(self, o, p, x, training):
        x = o.swap(x)
        h = o.lstm(x, p, self.hidden) if o.variant == "nn" else self.states(o, p, x)[0]
        return o.linear(h[-1], p, "head")

    def loss(self, o, out, y):
        return o.cross_entropy(out, y)


class Transformer(Net):
    variants = {"torch": ["sdpa"], "compile": ["sdpa"], "jax": ["plain"]}

    def data(self, random):
        return tuple(random.standard_normal((self.batch, self.length, self.width), np.float32) for _ in range(2))

    def parameters(self, p):
        for k in range(self.layers):
            p.linear(f"l{k}qkv", self.width, 3 * self.width)
            p.linear(f"l{k}o", self.width, self.width)
            p.linear(f"l{k}up", self.width, 4 * self.width)
            p.linear(f"l{k}down", 4 * self.width, self.width)
            p.layer_norm(f"l{k}n1", self.width)
            p.layer_norm(f"l{k}n2", self.width)

    def output(self, o, p, x, training):
        for k in range(self.layers):
            x = self.block(o, p, x, f"l{k}")
        return x

    def feed_forward(self, o, p, x, k):
        return o.linear(o.gelu(o.linear(x, p, k + "up")), p, k + "down")

    def loss(self, o, out, y):
        return o.mse(out, y)


class Bert(Transformer):
    """Devlin et al. 2019: an encoder, norms behind."""
    layers, width, heads, batch, length = 4, 512, 8, 4, 128

    def block(self, o, p, x, k):
        q, key, v = o.split(o.linear(x, p, k + "qkv"), 3)
        x = o.layer_norm(x + o.linear(o.attention(q, key, v, self.heads, False), p, k + "o"), p, k + "n1")
        return o.layer_norm(x + self.feed_forward(o, p, x, k), p, k + "n2")


class Gpt(Transformer):
    """Radford et al. 2018, 2019: a decoder, norms in front; rotary positions (Su et al. 2021)."""
    layers, width, heads, batch, length, characters = 6, 384, 6, 8, 256, 65

    def data(self, random):
        return tuple(random.integers(0, self.characters, (self.batch, self.length)) for _ in range(2))

    def parameters(self, p):
        p.normal("embedding", self.width, self.characters, self.width)
        super().parameters(p)
        p.layer_norm("n", self.width)
        p.linear("head", self.width, self.characters)

    def constants(self, o):
        half = self.width // self.heads // 2
        angle = np.arange(self.length)[:, None] * 10000.0 ** (-np.arange(half) / half)
        self.cos, self.sin = (o.array(f(angle)[:, None].astype(np.float32)) for f in (np.cos, np.sin))

    def output(self, o, p, x, training):
        x = super().output(o, p, p["embedding"][x], training)
        return o.linear(o.layer_norm(x, p, "n"), p, "head")

    def loss(self, o, out, y):
        return o.cross_entropy(out.reshape(-1, self.characters), y.reshape(-1))

    def rotate(self, o, x):
        """Turns each pair of neighbours of a head by its place."""
        x = x.reshape(self.batch, self.length, self.heads, -1, 2)
        a, b = x[..., 0], x[..., 1]
        turned = o.stack([a * self.cos - b * self.sin, a * self.sin + b * self.cos], -1)
        return turned.reshape(self.batch, self.length, self.width)

    def block(self, o, p, x, k):
        q, key, v = o.split(o.linear(o.layer_norm(x, p, k + "n1"), p, k + "qkv"), 3)
        a = o.attention(self.rotate(o, q), self.rotate(o, key), v, self.heads, True)
        x = x + o.linear(a, p, k + "o")
        return x + self.feed_forward(o, p, o.layer_norm(x, p, k + "n2"), k)


NETS = {"capsnet": CapsNet(), "resnet18": ResNet(False), "resnet50": ResNet(True), "mobilenet_v2": MobileNetV2(),
        "shufflenet": ShuffleNet(), "lstm": Lstm(), "mi_lstm": MiLstm(), "scrn": Scrn(), "sublstm": SubLstm(), "lltm": Lltm(),
        "bert": Bert(), "gpt": Gpt()}


def prepare(peer, net, variant, threads, device):
    """The training step and the inference of a net in that peer."""
    if peer == "jax":
        from peer_jax import Jax as Ops
    else:
        from peer_torch import Torch as Ops
    parameters = Parameters()
    net.parameters(parameters)
    ops = Ops(variant, threads, peer == "compile", device)
    net.constants(ops)
    return ops.prepare(net, parameters, *net.data(np.random.default_rng(1)), RATE)


def median_ms(step, seconds):
    for _ in range(3):
        step()
    times, end = [], time.perf_counter() + seconds
    while len(times) < LEAST or time.perf_counter() < end:
        t = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - t))
    return statistics.median(times)


def curve(step, start, seconds, path):
    with open(path, "w") as f:
        f.write("end_s,step_ms\n")
        begin = time.time()
        while begin - start < seconds:
            step()
            end = time.time()
            f.write(f"{end - start:.4f},{1e3 * (end - begin):.4f}\n")
            begin = end


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--peer", choices=("torch", "compile", "jax"))
    ap.add_argument("--net", choices=NETS)
    ap.add_argument("--variant", help="the first of --list")
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--seconds", type=float, default=2)
    ap.add_argument("--device", default="cpu", help="cpu or cuda:N; JAX takes the first GPU")
    ap.add_argument("--start", type=float, default=START, help="when the process was started (seconds since 1970)")
    ap.add_argument("--loss", action="store_true")
    ap.add_argument("--curve", help="a file")
    ap.add_argument("--list", action="store_true")
    args = ap.parse_args()
    if args.list:
        print(json.dumps({name: net.variants for name, net in NETS.items()}))
        return
    if not args.peer or not args.net:
        ap.error("--peer and --net are needed")
    net = NETS[args.net]
    train, infer = prepare(args.peer, net, args.variant or net.variants[args.peer][0], args.threads,
                           args.device)
    if args.loss:
        size = float(abs(infer()).mean())  # before the step changes the parameters
        print(json.dumps({"size": size, "loss": train()}))
        return
    if args.curve:
        curve(train, args.start, args.seconds, args.curve)
        return
    train()
    row = {"first_s": time.time() - args.start, "step_ms": median_ms(train, args.seconds)}
    row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row["infer_ms"] = median_ms(infer, args.seconds)
    print(json.dumps(row))


if __name__ == "__main__":
    main()
