#!/usr/bin/env python3
"""Do the examples' losses equal PyTorch's, from the same weights and batches?

usage: bench/parity/parity.py [--build DIR] [--only NAME ..] [--steps 20] [--batch 16] [--data DIR] [--full] [--verbose]

For each example: it writes its initial checkpoint (--steps 0 --checkpoint) and its batches (--dump), and trains in static
mode. PyTorch loads the checkpoint and trains the same net (nets.py) on those batches by the same optimiser. Printed is the
greatest relative difference of the losses, for f32 and f64. Losses of a deep net with relu part by rounding alone: a sum
in another order moves an activation over 0, and batch norm with few samples amplifies it. So in each step f32 may be ten
times as far from PyTorch as PyTorch in f32 is from PyTorch in f64 so far, or 1e-4; and f64, whose rounding is 1e-9 of f32's, ten
times as far as PyTorch in f64 is from itself with weights changed by 2^-45, about what sums of thousands of elements in another order
differ by (a deep net's losses part by a factor of 20 a step), or 1e-6. What the optimiser keeps after the first step (a gradient, or a tenth of it) is compared in f64 for each
parameter, relative to its greatest element: 1e-8. Exit status 1 where that is not so.
"""
import argparse
import csv
import itertools
import math
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import torch
import torch.nn.functional as F

import nets


def momentum(decay):
    return lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9, weight_decay=decay)


def adam(p, lr):
    return torch.optim.Adam(p, lr)


class Net:
    """program: of the example, with options; net: the same in PyTorch; optimiser; rate; small: options of a small one."""

    def __init__(self, program, net, optimiser, lr, loss=F.cross_entropy, small=""):
        self.program, self.net, self.optimiser, self.lr, self.loss_of = program.split(), net, optimiser, float(np.float32(lr)), loss
        self.small = small.split()

    def loss(self, p, batch):
        return self.loss_of(self.net(p, batch["samples"]), batch["labels"].long())


NETS = {
    "capsnet": Net("capsnet", nets.capsnet, adam, 1e-3, nets.margin_loss),
    "lstm": Net("lstm", nets.lstm, adam, 2e-3),
    "resnet18": Net("resnet", nets.resnet18, momentum(5e-4), 1e-3, small="--width 16"),
    "resnet50": Net("resnet --depth 50", nets.resnet50, momentum(5e-4), 1e-3, small="--width 8"),
    "mobilenet_v2": Net("mobilenet_v2", nets.mobilenet_v2, momentum(4e-5), 1e-3, small="--width 0.5"),
    "shufflenet": Net("shufflenet", nets.shufflenet, momentum(4e-5), 1e-3),
}


class Ours:
    """What the example did in a folder: the initial parameters, the batches, the losses, the first step's gradients."""

    def __init__(self, net, args, precision, folder):
        data = ["--data", args.data] if args.data and net.program[0] != "lstm" and net.program[0] != "capsnet" else []
        self.cmd = [os.path.join(args.build, "examples", net.program[0])] + net.program[1:] + data + ([] if args.full else net.small) + [
            "--batch", str(args.batch), "--seed", "7", "--lr", repr(net.lr), "--precision", precision, "--static",
            "--overwrite"]
        self.folder = folder
        self.run("--steps", "0", "--checkpoint", self.path("first.h5"))
        self.run("--steps", str(args.steps), "--dump", folder)
        self.run("--steps", str(args.steps), "--resume", self.path("first.h5"), "--csv", self.path("losses.csv"))
        with open(self.path("losses.csv")) as f:
            rows = list(csv.DictReader(f))
        self.losses = [float(r["loss"]) for r in rows if r["of"] == "step"]

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *options):
        done = subprocess.run(self.cmd + list(options), capture_output=True, text=True, cwd=self.folder)
        if done.returncode:
            sys.exit(f"{' '.join(self.cmd)} {' '.join(options)}: {done.stderr}")

    def parameters(self):
        with h5py.File(self.path("first.h5")) as f:
            return {k: torch.tensor(v[...]) for k, v in f["parameters"].items()}

    def moments(self):
        """What the optimiser keeps of each parameter after the first step: momentum's or Adam's first moment."""
        self.run("--steps", "1", "--resume", self.path("first.h5"), "--checkpoint", self.path("second.h5"))
        with h5py.File(self.path("second.h5")) as f:
            state = f["state"]
            return {k: torch.tensor(state[k + (".moment" if k + ".moment" in state else ".moment1")][...])
                    for k in f["parameters"]}

    def batches(self, n):
        fields = {f[:-4]: np.load(self.path(f)) for f in os.listdir(self.folder) if f.endswith(".npy")}
        return [{k: torch.tensor(v[i]) for k, v in fields.items()} for i in range(n)]


def train(net, parameters, batches, dtype):
    """PyTorch's losses, and what the optimiser keeps after the first step."""
    p = {k: v.detach().to(dtype, copy=True).requires_grad_() for k, v in parameters.items()}
    optimiser, losses, first = net.optimiser(list(p.values()), net.lr), [], None
    for batch in batches:
        loss = net.loss(p, {k: v.to(dtype) if v.is_floating_point() else v for k, v in batch.items()})
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if first is None:
            kept = [next(x for n, x in optimiser.state[v].items() if n in ("momentum_buffer", "exp_avg")) for v in p.values()]
            first = {k: x.clone() for k, x in zip(p, kept)}
        losses.append(loss.item())
    return losses, first


def apart(a, b):
    """The relative difference of each step; infinite where one has fewer losses, or no number."""
    if len(a) != len(b) or not all(map(math.isfinite, a + b)):
        return [math.inf] * max(len(a), len(b))
    return [abs(x - y) / max(abs(x), abs(y), 1e-30) for x, y in zip(a, b)]


def within(differences, rounding, least):
    """Is each of them at most ten times the greatest that rounding made so far, or `least`?"""
    return all(d <= max(least, 10 * r) for d, r in zip(differences, itertools.accumulate(rounding, max)))


def nudged(parameters):
    """Each element changed by 2^-45 of itself, up or down."""
    rng = torch.Generator().manual_seed(1)
    return {k: v * (1 + 2.0 ** -45 * (torch.rand(v.shape, generator=rng, dtype=torch.float64) - 0.5).sign()) for k, v in parameters.items()}


def moment_apart(a, b):
    """Relative to the greatest element; of a gradient that is zero but for rounding (a bias before batch norm) 0."""
    greatest = b.abs().max().item()
    return (a - b).abs().max().item() / greatest if greatest > 1e-12 else a.abs().max().item()


def compare(name, net, args):
    folder = {t: tempfile.TemporaryDirectory() for t in ("f32", "f64")}
    ours = {t: Ours(net, args, t, folder[t].name) for t in folder}
    start, batches = ours["f32"].parameters(), ours["f32"].batches(args.steps)
    theirs, _ = train(net, start, batches, torch.float32)
    wide, _ = train(net, start, batches, torch.float64)  # from f32's weights: what rounding does to PyTorch itself
    start64, batches64 = ours["f64"].parameters(), ours["f64"].batches(args.steps)
    own64, moments = train(net, start64, batches64, torch.float64)
    f32, f64, rounding = apart(ours["f32"].losses, theirs), apart(ours["f64"].losses, own64), apart(theirs, wide)
    chaos = [0.0] * len(f64)
    if max(f64) > 1e-6:
        chaos = apart(own64, train(net, nudged(start64), batches64, torch.float64)[0])
    kept = ours["f64"].moments()
    worst = max(kept, key=lambda k: moment_apart(kept[k], moments[k]))
    first = moment_apart(kept[worst], moments[worst])
    fine = first <= 1e-8 and within(f64, chaos, 1e-6) and within(f32, rounding, 1e-4)
    word = "DIFFERENT" if not fine else "equal" if max(f32) <= 1e-4 else "equal but for rounding"
    print(f"{name:14} loss {ours['f32'].losses[0]:.4f} .. {ours['f32'].losses[-1]:.4f}  f32 {max(f32):.1e}  f64 {max(f64):.1e}  first gradients {first:.1e}  "
          f"PyTorch f32 to f64 {max(rounding):.1e}, f64 to itself {max(chaos):.1e}  {word}", flush=True)
    if first > 1e-8:
        print(f"  the gradient of {worst} differs most")
    if args.verbose:
        for i, row in enumerate(zip(ours["f32"].losses, theirs, wide, ours["f64"].losses, own64)):
            print(f"  {i + 1:3}", *(f"{x:.9f}" for x in row), f"f64 {f64[i]:.1e}, itself {chaos[i]:.1e}")
    return fine


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--build", default=os.environ.get("RICCI_BUILD", "."))
    ap.add_argument("--only", nargs="*")
    ap.add_argument("--steps", type=int, default=20)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--full", action="store_true", help="all channels: resnet takes minutes in f64")
    ap.add_argument("--data", help="CIFAR-10, in place of drawn digits")
    ap.add_argument("--verbose", action="store_true", help="all losses: f32, PyTorch's, its f64, f64, PyTorch's")
    args = ap.parse_args()
    args.build = os.path.abspath(args.build)
    fine = [compare(name, net, args) for name, net in NETS.items() if not args.only or name in args.only]
    sys.exit(not all(fine))


if __name__ == "__main__":
    main()
