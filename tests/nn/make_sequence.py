#!/usr/bin/env python3
"""make_sequence.py - writes sequence.txt: results of sequence layers and their gradients by PyTorch in float64. A
case is a line with its name and the numbers that follow: the results, then the gradients of sum_k sum_i y_k[i] s_k[i]
with respect to each operand, in the order of the operands in test_sequence.c. Element i of operand k is
((7919 i + 31 k) mod 101) / 101 - 1/2; s_k are made in the same way, with k + 50.

usage: make_sequence.py > tests/nn/sequence.txt"""
import math
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def value(shape, k):
    return torch.tensor([((i * 7919 + k * 31) % 101) / 101 - 0.5 for i in range(math.prod(shape))]).reshape(shape)


def case(name, shapes, function):
    x = [value(s, k).requires_grad_(True) for k, s in enumerate(shapes)]
    y = function(*x)
    y = y if isinstance(y, (tuple, list)) else (y,)
    loss = sum((r * value(r.shape, k + 50)).sum() for k, r in enumerate(y))
    g = torch.autograd.grad(loss, x, allow_unused=True)
    g = [torch.zeros_like(b) if a is None else a for a, b in zip(g, x)]
    numbers = torch.cat([t.detach().reshape(-1) for t in (*y, *g)]).tolist()
    print(name, len(numbers))
    for at in range(0, len(numbers), 8):
        print(" ".join(f"{v:.11g}" for v in numbers[at:at + 8]))


# ---- attention
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


# ---- positions
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


# ---- recurrent layers: operands are the input, the initial states, the parameters
N, C = 3, 2
LAYER = dict(rnn=torch.nn.RNN, lstm=torch.nn.LSTM, gru=torch.nn.GRU)


def recurrent(kind, states, layers=1, both=False, sizes=None, relu=False):
    def run(x, *rest):
        start, p = [s.contiguous() for s in rest[:states]], rest[states:]
        m = LAYER[kind](N, C, layers, bidirectional=both, **(dict(nonlinearity="relu") if relu else {}))
        names = [name for name, _ in m.named_parameters()]
        h = tuple(start) if kind == "lstm" else start[0]
        if sizes:  # [b,t,n]
            x = torch.nn.utils.rnn.pack_padded_sequence(x.transpose(0, 1), torch.tensor(sizes), enforce_sorted=False)
        y, last = torch.func.functional_call(m, dict(zip(names, p)), (x, h))
        if sizes:
            y = torch.nn.utils.rnn.pad_packed_sequence(y, total_length=T)[0].transpose(0, 1)
        return (y, *(last if kind == "lstm" else (last,)))
    gates, directions = dict(rnn=1, lstm=4, gru=3)[kind] * C, 2 if both else 1
    shapes = [(B, T, N) if sizes else (T, B, N)] + [(layers * directions, B, C)] * states
    for layer in range(layers):
        shapes += [(gates, directions * C if layer else N), (gates, C), (gates,), (gates,)] * directions
    case(kind + " relu" * relu + " layers" * (layers > 1) + " lengths" * bool(sizes), shapes, run)


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
