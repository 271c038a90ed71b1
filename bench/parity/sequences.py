#!/usr/bin/env python3
"""Do the losses of the sequence models equal PyTorch's, from the same weights and batches, and their bits per character?

usage: bench/parity/sequences.py [--build DIR] [--only NAME ..] [--steps 20] [--long N] [--data FILE] [--verbose]

As parity.py, whose functions it uses: the example writes its initial checkpoint and its batches, trains in static mode, and
PyTorch trains the same net, written below from the papers. --long N compares the mean loss of the last tenth of N steps
instead, in bits: at most 0.02 apart. Exit status 1 where they differ.
"""
import argparse, math, os, sys, tempfile

import torch
import torch.nn.functional as F

import parity


# ---- nets: (p, tokens [b,t]) -> scores [b,t,vocabulary]
def mi_lstm(x, h, c, p):
    z = (x @ p["weight_ih_l0"].T) * (h @ p["weight_hh_l0"].T) + p["bias_l0"]
    i, f, g, o = z.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def sublstm(x, h, c, p):
    i, f, z, o = torch.sigmoid(F.linear(x, p["weight_ih_l0"], p["bias_ih_l0"]) + h @ p["weight_hh_l0"].T).chunk(4, 1)
    c = f * c + z - i
    return torch.sigmoid(c) - o, c


def lltm(x, h, c, p):
    i, o, g = (F.linear(x, p["weight_ih_l0"], p["bias_ih_l0"]) + h @ p["weight_hh_l0"].T).chunk(3, 1)
    c = c + F.elu(g) * torch.sigmoid(i)
    return torch.tanh(c) * torch.sigmoid(o), c


def scrn(x, h, c, p):
    c = 0.05 * (x @ p["weight_ic_l0"].T) + 0.95 * c
    z = c @ p["weight_ch_l0"].T + F.linear(x, p["weight_ih_l0"], p["bias_ih_l0"]) + h @ p["weight_hh_l0"].T
    return torch.sigmoid(z), c


def recurrent(step):
    def net(p, tokens):
        cell = {k[5:]: v for k, v in p.items() if k.startswith("cell.")}
        x = p["embedding.weight"][tokens]
        h = x.new_zeros(len(x), cell["weight_hh_l0"].shape[1])
        c = x.new_zeros(len(x), len(cell["weight_ic_l0"])) if step is scrn else h
        hs, cs = [], []
        for t in range(x.shape[1]):
            h, c = step(x[:, t], h, c, cell)
            hs.append(h)
            cs.append(c)
        y = F.linear(torch.stack(hs, 1), p["head.weight"], p["head.bias"])
        return y + torch.stack(cs, 1) @ p["head_context.weight"].T if step is scrn else y
    return net


def linear(p, k, x):
    return F.linear(x, p[k + ".weight"], p[k + ".bias"])


def norm(p, k, x):
    return F.layer_norm(x, x.shape[-1:], p[k + ".weight"], p[k + ".bias"])


def split(x, heads):
    b, t, w = x.shape
    return x.view(b, t, heads, w // heads).transpose(1, 2)


def rotary(x):
    d = x.shape[-1]
    angle = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * 10000 ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    turned = torch.view_as_complex(x.reshape(*x.shape[:-1], d // 2, 2)) * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(turned).flatten(-2)


def attention(p, k, x, heads, causal):
    q, key, v = (split(a, heads) for a in linear(p, k + "qkv", x).chunk(3, 2))
    if causal:
        q, key = rotary(q), rotary(key)
    a = F.scaled_dot_product_attention(q, key, v, is_causal=causal)
    return linear(p, k + "proj", a.transpose(1, 2).reshape(x.shape))


def gpt(p, tokens, heads=4):
    x, i = p["embedding.weight"][tokens], 0
    while f"block{i}.qkv.weight" in p:
        k = f"block{i}."
        x = x + attention(p, k, norm(p, k + "norm1", x), heads, True)
        x = x + linear(p, k + "down", F.gelu(linear(p, k + "up", norm(p, k + "norm2", x))))
        i += 1
    return linear(p, "head", norm(p, "norm", x))


def bert(p, tokens, heads=4):
    x, i = norm(p, "norm", p["embedding.weight"][tokens] + p["positions"]), 0
    while f"layer{i}.qkv.weight" in p:
        k = f"layer{i}."
        x = norm(p, k + "norm1", x + attention(p, k, x, heads, False))
        x = norm(p, k + "norm2", x + linear(p, k + "down", F.gelu(linear(p, k + "up", x))))
        i += 1
    return linear(p, "head", x)


# ---- training
class Clipped:
    """Clips the norm of all gradients to 1 before each step of Adam or AdamW; vectors do not decay."""

    def __init__(self, p, lr, decay, beta2):
        groups = [{"params": [x for x in p if x.dim() > 1], "weight_decay": decay},
                  {"params": [x for x in p if x.dim() == 1], "weight_decay": 0.0}]
        self.p = p
        self.adam = torch.optim.AdamW([g for g in groups if g["params"]], lr, betas=(0.9, beta2))
        self.state, self.zero_grad = self.adam.state, self.adam.zero_grad

    def step(self):
        torch.nn.utils.clip_grad_norm_(self.p, 1)
        self.adam.step()


class Sequence(parity.Net):
    def __init__(self, program, net, lr, decay=0.0, beta2=0.999, inputs=("samples", "targets")):
        super().__init__(program, net, lambda p, lr: Clipped(p, lr, decay, beta2), lr)
        self.small, self.inputs = [], inputs

    def loss(self, p, batch):
        x, y = (batch[k].long() for k in self.inputs)
        return F.cross_entropy(self.net(p, x).flatten(0, 1), y.flatten(), ignore_index=-1)


SMALL = " --hidden 64 --length 32"
DEEP = " --layers 2 --width 64 --heads 4 --length 32"
NETS = {
    "mi_lstm": Sequence("mi_lstm" + SMALL, recurrent(mi_lstm), 2e-3),
    "scrn": Sequence("scrn --context 24" + SMALL, recurrent(scrn), 2e-3),
    "sublstm": Sequence("sublstm" + SMALL, recurrent(sublstm), 2e-3),
    "lltm": Sequence("lltm" + SMALL, recurrent(lltm), 2e-3),
    "gpt": Sequence("gpt" + DEEP, gpt, 1e-3, 0.1, 0.99),
    "bert": Sequence("bert" + DEEP, bert, 3e-4, 0.01, 0.999, ("hidden", "chosen")),
}


def compare_bits(name, net, args):
    with tempfile.TemporaryDirectory() as folder:
        ours = parity.Ours(net, args, "f32", folder)
        theirs, _ = parity.train(net, ours.parameters(), ours.batches(args.steps), torch.float32)
        last = max(1, args.steps // 10)
        a, b = (sum(x[-last:]) / last / math.log(2) for x in (ours.losses, theirs))
        fine = abs(a - b) <= 0.02 and len(ours.losses) == len(theirs)
        print(f"{name:14} bits after {args.steps} steps {a:.4f}  PyTorch {b:.4f}  {'equal' if fine else 'DIFFERENT'}", flush=True)
        return fine


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--build", default=os.environ.get("RICCI_BUILD", "."))
    ap.add_argument("--only", nargs="*")
    ap.add_argument("--steps", type=int, default=20)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--long", type=int, help="compare bits per character after so many steps")
    ap.add_argument("--data", help="a text, in place of sums in words")
    ap.add_argument("--verbose", action="store_true", help="all losses: f32, PyTorch's, its f64, f64, PyTorch's")
    args = ap.parse_args()
    args.build, args.full, args.steps = os.path.abspath(args.build), False, args.long or args.steps
    args.data = os.path.abspath(args.data) if args.data else None
    judge = compare_bits if args.long else parity.compare
    sys.exit(not all([judge(name, net, args) for name, net in NETS.items() if not args.only or name in args.only]))


if __name__ == "__main__":
    main()
