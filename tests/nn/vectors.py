#!/usr/bin/env python3
"""Writes vectors.txt: what PyTorch gives, in f64, for layers, sequence layers, optimisers, schedules and losses.

usage: python3 tests/nn/vectors.py >tests/nn/vectors.txt

A record is a line "part/case/array:" with the array's shape behind it, then its numbers, eight a line. Arrays of a case stand
together, in the order in which the tests want them; some have one name. vectors.h reads it."""
import math

import numpy as np
import torch
import torch.nn.functional as F
import vectors_layers
from torch.optim import lr_scheduler as S
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

O = torch.optim
RECORD = ["part", "case", 17]


def begin(*record):
    """Part and case of what put() writes from here on, and the digits of its numbers."""
    RECORD[:] = record


def put(name, x):
    part, case, digits = RECORD
    x = torch.as_tensor(x).detach().double()
    print(f"{part}/{case}/{name}:", *x.shape)
    numbers = x.flatten().tolist()
    for at in range(0, len(numbers), 8):
        print(" ".join(f"{v:.{digits}g}" for v in numbers[at:at + 8]))


def layers(cases):
    """Layers with drawn operands: "in" get a gradient, "state" none, "i64" are indices. `train`: in training mode; value; a seed
    dy; "grad" of <dy, y>; "after": the states after a training step. Operands are rounded to 4 digits before, so that the file
    holds them exactly."""
    def rounded(t):
        return (t * 10000).round() / 10000

    for name, fn, operands, train in cases:
        begin("layers", name, 13)
        put("train", train)
        given = [t.clone() if kind == "i64" else rounded(t) for kind, t in operands]
        floats = [t.requires_grad_() for (kind, _), t in zip(operands, given) if kind == "in"]
        for (kind, _), t in zip(operands, given):
            put(kind, t)
        states = [t.clone() if kind == "state" else t for (kind, _), t in zip(operands, given)]
        y = fn(*states)
        seed = rounded(torch.rand(y.shape, dtype=torch.float64) * 2 - 1)
        put("value", y)
        put("seed", seed)
        for g in torch.autograd.grad(y, floats, seed):
            put("grad", g)
        for (kind, _), t in zip(operands, states):
            if kind == "state" and train:
                put("after", t)


def sequences():
    """Attention, positions and recurrent layers: results "y", then "grad": the gradients of sum_k sum_i y_k[i] s_k[i] with
    respect to each operand, in the order of the operands in test_sequence*.c. Element i of operand k is
    ((7919 i + 31 k) mod 101) / 101 - 1/2; s_k are made in the same way, with k + 50."""
    def value(shape, k):
        return torch.tensor([((i * 7919 + k * 31) % 101) / 101 - 0.5 for i in range(math.prod(shape))]).reshape(shape)

    def case(name, shapes, function):
        begin("sequences", name, 11)
        x = [value(s, k).requires_grad_(True) for k, s in enumerate(shapes)]
        y = function(*x)
        y = y if isinstance(y, (tuple, list)) else (y,)
        loss = sum((r * value(r.shape, k + 50)).sum() for k, r in enumerate(y))
        g = torch.autograd.grad(loss, x, allow_unused=True)
        for r in y:
            put("y", r)
        for a, b in zip(g, x):
            put("grad", torch.zeros_like(b) if a is None else a)

    # attention
    B, H, T, S, D = 2, 2, 3, 4, 2
    SDPA = [(B, H, T, D), (B, H, S, D), (B, H, S, D)]
    sdpa = F.scaled_dot_product_attention
    lengths = torch.tensor([4, 2])
    seen = (torch.arange(S) < lengths[:, None])[:, None, None, :]

    case("plain", SDPA, sdpa)
    case("causal", SDPA, lambda q, k, v: sdpa(q, k, v, is_causal=True))
    case("position", SDPA, lambda q, k, v: sdpa(q, k, v, attn_mask=torch.ones(T, S, dtype=bool).tril(1)))
    case("lengths", SDPA, lambda q, k, v: sdpa(q, k, v, attn_mask=seen.expand(B, H, T, S)))
    case("mask", SDPA + [(T, S)], lambda q, k, v, m: sdpa(q, k, v, attn_mask=m.expand(B, H, T, S)))
    case("mask3", SDPA + [(B, T, S)], lambda q, k, v, m: sdpa(q, k, v, attn_mask=m[:, None].expand(B, H, T, S)))
    case("mask4", SDPA + [(B, H, T, S)], lambda q, k, v, m: sdpa(q, k, v, attn_mask=m, is_causal=False))
    chosen = torch.tensor([[(3 * i + j) % 4 < 2 for j in range(S)] for i in range(T)])
    case("chosen", SDPA, lambda q, k, v: sdpa(q, k, v, attn_mask=chosen))
    combined = torch.ones(T, S, dtype=bool).tril(1) & seen & chosen
    case("combined", SDPA, lambda q, k, v: torch.nan_to_num(sdpa(q, k, v, attn_mask=combined)))
    case("scale", SDPA, lambda q, k, v: sdpa(q, k, v, scale=0.3))
    case("grouped", [(B, 4, T, D), (B, 2, S, D), (B, 2, S, 3)],
         lambda q, k, v: sdpa(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)))

    def flat(q, k, v):
        part = lambda x: x.unflatten(2, (H, -1)).transpose(1, 2)
        return sdpa(part(q), part(k), part(v), is_causal=True).transpose(1, 2).flatten(2)

    case("flat", [(B, T, H * D)] * 3, flat)

    def module(kdim, vdim, bias, padding):
        def run(*args):
            n = 1 if kdim is None else 3
            x, p = args[:n], args[n:]
            q, k, v = x if n == 3 else x * 3
            m = torch.nn.MultiheadAttention(H * D, H, bias=bias, batch_first=True, kdim=kdim, vdim=vdim)
            names = [name for name, _ in sorted(m.named_parameters(), key=lambda a: order.index(a[0]))]
            mask = ~(torch.arange(k.shape[1]) < torch.tensor([k.shape[1], 2])[:, None]) if padding else None
            return torch.func.functional_call(m, dict(zip(names, p)), (q, k, v),
                                              dict(key_padding_mask=mask, need_weights=False))[0]
        return run

    order = ["in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias", "out_proj.weight",
             "out_proj.bias"]
    E = H * D
    case("self", [(B, T, E), (3 * E, E), (3 * E,), (E, E), (E,)], module(None, None, True, False))
    case("self no bias", [(B, T, E), (3 * E, E), (E, E)], module(None, None, False, True))
    case("cross", [(B, T, E), (B, S, E), (B, S, E), (3 * E, E), (3 * E,), (E, E), (E,)], module(E, E, True, True))
    case("widths", [(B, T, E), (B, S, 3), (B, S, 2), (E, E), (E, 3), (E, 2), (3 * E,), (E, E), (E,)],
         module(3, 2, True, True))

    def grouped(x, wq, wk, wv, b, wo, bo):
        part = lambda y: y.unflatten(2, (-1, D)).transpose(1, 2)
        q, k, v = (part(x @ w.T + c) for w, c in zip((wq, wk, wv), b.split((E, D, D))))
        y = sdpa(q, k.expand_as(q), v.expand_as(q), is_causal=True)
        return y.transpose(1, 2).flatten(2) @ wo.T + bo

    case("grouped module", [(B, T, E), (E, E), (D, E), (D, E), (E + 2 * D,), (E, E), (E,)], grouped)

    # positions
    def rotate(x, dims, halves, base, first):
        at = torch.arange(x.shape[2]) + first
        angle = at[:, None] * base ** (-2 * torch.arange(dims // 2) / dims)
        turn = torch.polar(torch.ones_like(angle), angle)
        head, rest = x[..., :dims], x[..., dims:]
        pair = head.unflatten(-1, (2, -1)).transpose(-1, -2) if halves else head.unflatten(-1, (-1, 2))
        out = torch.view_as_real(torch.view_as_complex(pair.contiguous()) * turn)
        out = out.transpose(-1, -2).flatten(-2) if halves else out.flatten(-2)
        return torch.cat([out, rest], -1)

    X = [(B, H, T, 6)]
    case("rotary", X, lambda x: rotate(x, 6, False, 10000, 0))
    case("rotary halves", X, lambda x: rotate(x, 6, True, 10000, 0))
    case("rotary part", X, lambda x: rotate(x, 4, True, 500, 7))
    case("rotary flat", [(B, T, H * 4)],
         lambda x: rotate(x.unflatten(2, (H, -1)).transpose(1, 2), 4, False, 10000, 0).transpose(1, 2).flatten(2))

    def sinusoidal(x, first):
        at, column = torch.arange(x.shape[1]) + first, torch.arange(x.shape[2])
        angle = at[:, None] / 10000 ** (column // 2 * 2 / x.shape[2])
        return x + torch.where(column % 2 == 0, angle.sin(), angle.cos())

    case("sinusoidal", [(B, T, 6)], lambda x: sinusoidal(x, 0))
    case("sinusoidal odd", [(B, T, 5)], lambda x: sinusoidal(x, 9))
    case("learned", [(B, T, 4), (5, 4)], lambda x, w: x + w[:T])
    case("learned at", [(B, T, 4), (5, 4)], lambda x, w: x + w[2:5])

    # recurrent layers: operands are the input, the initial states, the parameters
    N, C = 3, 2
    LAYER = dict(rnn=torch.nn.RNN, lstm=torch.nn.LSTM, gru=torch.nn.GRU)

    def recurrent(kind, states, layers=1, both=False, sizes=None, relu=False, projection=0):
        def run(x, *rest):
            start, p = [s.contiguous() for s in rest[:states]], rest[states:]
            m = LAYER[kind](N, C, layers, bidirectional=both, **(dict(nonlinearity="relu") if relu else {}),
                            **(dict(proj_size=projection) if projection else {}))
            names = [name for name, _ in m.named_parameters()]
            h = tuple(start) if kind == "lstm" else start[0]
            if sizes:  # [b,t,n]
                x = torch.nn.utils.rnn.pack_padded_sequence(x.transpose(0, 1), torch.tensor(sizes), enforce_sorted=False)
            y, last = torch.func.functional_call(m, dict(zip(names, p)), (x, h))
            if sizes:
                y = torch.nn.utils.rnn.pad_packed_sequence(y, total_length=T)[0].transpose(0, 1)
            return (y, *(last if kind == "lstm" else (last,)))
        gates, directions = dict(rnn=1, lstm=4, gru=3)[kind] * C, 2 if both else 1
        columns = projection or C
        shapes = [(B, T, N) if sizes else (T, B, N)]
        shapes += [(layers * directions, B, columns), (layers * directions, B, C)][:states]
        for layer in range(layers):
            shapes += ([(gates, directions * columns if layer else N), (gates, columns), (gates,), (gates,)]
                       + [(projection, C)] * bool(projection)) * directions
        case(kind + " relu" * relu + " layers" * (layers > 1) + " lengths" * bool(sizes) + " projection" * bool(projection),
             shapes, run)

    recurrent("rnn", 1)
    recurrent("rnn", 1, relu=True)
    recurrent("gru", 1)
    recurrent("lstm", 2)
    recurrent("gru", 1, layers=2)
    recurrent("lstm", 2, layers=2, both=True, sizes=[3, 1])
    s, tanh = torch.sigmoid, torch.tanh

    def loop(name, widths, weights, step):
        """step: x, states, weights -> states; the cells of the benchmarks (peers)."""
        def run(x, *rest):
            state, w, out = [h[0] for h in rest[:len(widths)]], rest[len(widths):], []
            for t in range(T):
                state = step(x[t], *state, *w)
                out.append(state)
            return (torch.stack([o[0] for o in out]), *(h[None] for h in state))
        case(name, [(T, B, N)] + [(1, B, w) for w in widths] + weights, run)

    def lstm(z, c):
        i, f, g, o = z.chunk(4, 1)
        c = s(f) * c + s(i) * tanh(g)
        return s(o) * tanh(c), c

    def sublstm(x, h, c, w, u, b):
        i, f, z, o = s(x @ w.T + h @ u.T + b).chunk(4, 1)
        c = f * c + z - i
        return s(c) - o, c

    def lltm(x, h, c, w, u, b):
        i, o, g = (x @ w.T + h @ u.T + b).chunk(3, 1)
        c = c + F.elu(g) * s(i)
        return tanh(c) * s(o), c

    def scrn(x, h, c, w, u, b, v, p):
        c = 0.05 * (x @ v.T) + 0.95 * c
        return s(c @ p.T + x @ w.T + h @ u.T + b), c

    W = [(4 * C, N), (4 * C, C)]
    loop("mi_lstm", [C, C], W + [(4 * C,)], lambda x, h, c, w, u, b: lstm(x @ w.T * (h @ u.T) + b, c))
    loop("mi_lstm general", [C, C], W + [(4 * C,)] * 4, lambda x, h, c, w, u, alpha, beta_hh, beta_ih, b: lstm(
        alpha * (x @ w.T) * (h @ u.T) + beta_hh * (h @ u.T) + beta_ih * (x @ w.T) + b, c))
    loop("sublstm", [C, C], W + [(4 * C,)], sublstm)
    loop("lltm", [C, C], [(3 * C, N), (3 * C, C), (3 * C,)], lltm)
    loop("scrn", [C, 3], [(C, N), (C, C), (C,), (3, N), (C, 3)], scrn)
    recurrent("lstm", 2, projection=1)
    recurrent("lstm", 2, layers=2, both=True, sizes=[3, 1], projection=1)
    loop("rnn projection", [1], [(C, N), (C, 1), (C,), (C,), (1, C)],
         lambda x, h, w, u, b, d, p: (tanh(x @ w.T + h @ u.T + b + d) @ p.T,))


def values(seed, *shape):
    i = np.arange(int(np.prod(shape)), dtype=np.float64)
    return torch.tensor(1.5 * np.sin(seed + 0.73 * i + 0.11 * i * i)).reshape(shape)


def optimisers():
    """Trained nets; operands by values(). LAMB is no part of PyTorch; it is written here from the paper (You et al. 2020, algorithm
    2)."""

    class Net(torch.nn.Module):
        """tanh(x w + b); `unused` is in no loss."""

        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(values(1, 3, 4))
            self.b = torch.nn.Parameter(values(2, 4))
            self.unused = torch.nn.Parameter(values(3, 2))

        def forward(self, x):
            return torch.tanh(x @ self.w + self.b)

    class Lamb(torch.optim.Optimizer):
        def __init__(self, params, lr, weight_decay=0.0):
            super().__init__(params, dict(lr=lr, weight_decay=weight_decay))

        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    s = self.state[p]
                    t = s["t"] = s.get("t", 0) + 1
                    s["m"] = 0.9 * s.get("m", 0) + 0.1 * p.grad
                    s["v"] = 0.999 * s.get("v", 0) + 0.001 * p.grad**2
                    m, v = s["m"] / (1 - 0.9**t), s["v"] / (1 - 0.999**t)
                    u = m / (v.sqrt() + 1e-6) + group["weight_decay"] * p.data
                    a, b = p.data.norm(), u.norm()
                    ratio = a / b if a > 0 and b > 0 else 1.0
                    p.data -= group["lr"] * ratio * u

    def train(name, make, batches=1, norm=0, value=0, average=0, steps=7):
        begin("optimisers", name, 17)
        net = Net()
        optimiser = make(net)
        ema = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(average)) if average else None
        for k in range(steps):
            x, t = values(10 + k, 5, 3), values(20 + k, 5, 4)
            (((net(x) - t) ** 2).sum() / batches).backward()
            if (k + 1) % batches:
                continue
            if value:
                torch.nn.utils.clip_grad_value_(net.parameters(), value)
            if norm:
                torch.nn.utils.clip_grad_norm_(net.parameters(), norm)
            optimiser.step()
            optimiser.zero_grad()
            if ema:
                ema.update_parameters(net)
        for which in ("w", "b", "unused"):
            put(which, getattr(net, which))
        if ema:
            put("ema.w", ema.module.w)
            x, t = values(10 + steps - 1, 5, 3), values(20 + steps - 1, 5, 4)
            put("ema.loss", ((ema.module(x) - t) ** 2).sum())

    def all_of(rule, **options):
        return lambda net: rule(net.parameters(), lr=0.03125, **options)

    def grouped(net):
        """No decay and half the rate for b."""
        return torch.optim.AdamW([dict(params=[net.w], weight_decay=0.25),
                                  dict(params=[net.b], weight_decay=0.0, lr=0.03125 / 2)], lr=0.03125)

    def frozen(net):
        net.b.requires_grad_(False)
        return torch.optim.SGD([net.w], lr=0.03125)

    train("sgd", all_of(O.SGD))
    train("sgd_decay", all_of(O.SGD, weight_decay=0.25))
    train("momentum", all_of(O.SGD, momentum=0.9, weight_decay=0.25))
    train("nesterov", all_of(O.SGD, momentum=0.75, nesterov=True))
    train("adam", all_of(O.Adam))
    train("adam_options", all_of(O.Adam, betas=(0.5, 0.75), eps=0.125, weight_decay=0.25))
    train("adam_beta1", all_of(O.Adam, betas=(0.0, 0.999)))
    train("adamw", all_of(O.AdamW))
    train("lamb", all_of(Lamb))
    train("lamb_decay", all_of(Lamb, weight_decay=0.25))
    train("rmsprop", all_of(O.RMSprop))
    train("rmsprop_momentum", all_of(O.RMSprop, momentum=0.5))
    train("adagrad", all_of(O.Adagrad))
    train("clip_norm", all_of(O.SGD), norm=0.25)
    train("clip_value", all_of(O.SGD), value=0.5)
    train("clip_both", all_of(O.SGD), value=0.5, norm=0.25)
    train("accumulate", all_of(O.AdamW), batches=3)
    train("average", all_of(O.Adam), average=0.75)
    train("everything", all_of(O.AdamW, weight_decay=0.25), batches=2, norm=2.0, average=0.5)
    train("groups", grouped)
    train("amsgrad", all_of(O.Adam, amsgrad=True, betas=(0.9, 0.5)))
    train("amsgrad_decay", all_of(O.Adam, amsgrad=True, weight_decay=0.25))
    train("amsgradw", all_of(O.AdamW, amsgrad=True, betas=(0.5, 0.5)))
    train("maximise", all_of(O.AdamW, maximize=True, weight_decay=0.25), norm=2.0)
    train("frozen", frozen)


def schedules():
    """The rate of each step, which the tests compare as f32."""

    def rates(name, make, steps=40):
        optimiser = O.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
        schedule = make(optimiser)
        got = []
        for _ in range(steps):
            got.append(optimiser.param_groups[0]["lr"])
            optimiser.step()
            schedule.step()
        begin("schedules", name, 17)
        put("rate", got)

    def after_warmup(make, warmup=5):
        return lambda o: S.SequentialLR(o, [S.LinearLR(o, 1 / warmup, 1.0, warmup - 1), make(o)], [warmup])

    def held(o, length):
        """Cosine to 0.01 and no further."""
        return S.LambdaLR(o, lambda t: (0.01 + 0.29 * (1 + np.cos(np.pi * min(t / length, 1))) / 2) / 0.3)

    rates("constant", lambda o: S.ConstantLR(o, factor=1.0))
    rates("steps", lambda o: S.StepLR(o, 7, 0.5))
    rates("milestones", lambda o: S.MultiStepLR(o, [3, 10, 30], 0.1))
    rates("cosine", lambda o: S.CosineAnnealingLR(o, 39, 0.01))
    rates("cosine_held", lambda o: held(o, 25))
    rates("linear", lambda o: S.LinearLR(o, 1.0, 1 / 3, 30))
    rates("one_cycle", lambda o: S.OneCycleLR(o, 0.3, 40))
    rates("one_cycle_warmup", lambda o: S.OneCycleLR(o, 0.3, 40, pct_start=0.25))
    rates("warmup_constant", after_warmup(lambda o: S.ConstantLR(o, factor=1.0)))
    rates("warmup_cosine", after_warmup(lambda o: S.CosineAnnealingLR(o, 35, 0.01)))
    rates("warmup_milestones", after_warmup(lambda o: S.MultiStepLR(o, [3, 20], 0.1)))


def losses():
    """The value, then the gradient of the first operand."""

    def loss(name, x, f):
        x = x.clone().requires_grad_()
        y = f(x)
        y.backward()
        begin("losses", name, 17)
        put("value", y)
        put("gradient", x.grad)

    def classes(x):
        return x.movedim(-1, 1)

    x, label = values(5, 2, 3, 5), torch.tensor([[0, 4, 2], [1, 1, 3]])
    weight = torch.tensor([0.5, 1.0, 2.0, 0.25, 1.5])
    negative = torch.tensor([[0, -100, 2], [1, -100, 3]])
    loss("cross_entropy", x, lambda x: F.cross_entropy(classes(x), label))
    loss("cross_entropy_large", 400 * x, lambda x: F.cross_entropy(classes(x), label))
    loss("smoothing", x, lambda x: F.cross_entropy(classes(x), label, label_smoothing=0.1))
    loss("ignored", x, lambda x: F.cross_entropy(classes(x), negative, ignore_index=-100))
    loss("ignored_class", x, lambda x: F.cross_entropy(classes(x), label, ignore_index=1))
    loss("weights", x, lambda x: F.cross_entropy(classes(x), label, weight))
    loss("all_options", x, lambda x: F.cross_entropy(classes(x), negative, weight, ignore_index=-100, label_smoothing=0.2))
    loss("hinge", x, lambda x: F.multi_margin_loss(x.reshape(6, 5), label.reshape(6), margin=0.75))
    a, b = values(6, 3, 4), values(7, 3, 4)
    loss("squared", a, lambda a: F.mse_loss(a, b))
    loss("absolute", a, lambda a: F.l1_loss(a, b))
    loss("huber", a, lambda a: F.huber_loss(a, b, delta=0.75))
    loss("smooth_l1", a, lambda a: F.smooth_l1_loss(a, b, beta=0.375))
    z, target = values(8, 3, 4) * 40, torch.sigmoid(values(9, 3, 4))
    z[0, 0] = 0
    loss("binary", z, lambda z: F.binary_cross_entropy_with_logits(z, target))
    p = torch.softmax(values(9, 2, 3, 4), -1)
    p[0, 0, 0] = 0
    loss("kl", a.reshape(3, 4), lambda a: F.kl_div(a.expand(2, 3, 4).reshape(6, 4), p.reshape(6, 4), reduction="batchmean"))
    x, label = values(11, 8, 4, 5), torch.tensor([[1, 1, 2], [3, 4, 1], [2, 1, 1], [4, 4, 4]])
    steps, lengths = torch.tensor([8, 6, 7, 5]), torch.tensor([3, 2, 1, 3])
    loss("ctc", x, lambda x: F.ctc_loss(x.log_softmax(-1), label, steps, lengths))
    full = torch.full((4,), 8), torch.full((4,), 3)
    loss("ctc_full", 20 * x, lambda x: F.ctc_loss(x.log_softmax(-1), label, *full))
    loss("ctc_blank", x, lambda x: F.ctc_loss(x.log_softmax(-1), label - 1, steps, lengths, blank=4))


for one in vectors_layers.LISTS:
    layers(vectors_layers.drawn(*one))
torch.set_default_dtype(torch.float64)
for part in (sequences, optimisers, schedules, losses):
    part()
