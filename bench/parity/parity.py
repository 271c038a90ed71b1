#!/usr/bin/env python3
"""Do the examples' losses equal PyTorch's, from the same weights and batches?

usage: bench/parity/parity.py [--build DIR] [--only NAME ..] [--steps 20] [--batch 16] [--data DIR] [--full] [--verbose]

For each example: it writes its initial checkpoint (--steps 0 --checkpoint) and its batches (--dump), and trains in static
mode. PyTorch loads the checkpoint and trains the same net (nets.py) on those batches by the same optimiser. Printed is the
greatest relative difference of the losses. Losses of a deep net with relu part by rounding alone: a sum in another order moves
an activation over 0, and batch norm with few samples amplifies it (by a factor of 20 a step). So in each step f32 may be ten times
as far from PyTorch as PyTorch in f32 is from PyTorch in f64 so far, or 1e-4. Whether all of it is rounding, f64 says, where
PyTorch takes each step from the weights and moments that the example had before it (a checkpoint for each step), so that nothing
adds up: weights and moments after the step differ by 1e-8 at most, relative to the greatest element of each, and losses by 1e-7
(the CSV has them in f32). Exit status 1 where that is not so.
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


LOSS_APART, STATE_APART = 1e-7, 1e-8  # of f64 in one step from the same state


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
        return self.state("first.h5")[0]

    def state(self, name):
        """Of a checkpoint: parameters, and what the optimiser keeps of them by PyTorch's names."""
        with h5py.File(self.path(name)) as f:
            def read(suffix):
                return {k: torch.tensor(f["state"][k + suffix][...]) for k in f["parameters"] if k + suffix in f["state"]}
            kept = {"momentum_buffer": read(".moment"), "exp_avg": read(".moment1"), "exp_avg_sq": read(".moment2")}
            return {k: torch.tensor(v[...]) for k, v in f["parameters"].items()}, {k: v for k, v in kept.items() if v}

    def step(self, t):
        """Takes step t, from 1 on, from the checkpoint before it; what state() says of that checkpoint and of the next."""
        before, after = "first.h5" if t == 1 else f"{t - 1}.h5", f"{t}.h5"
        self.run("--steps", str(t), "--resume", self.path(before), "--checkpoint", self.path(after))
        return self.state(before), self.state(after)

    def batches(self, n):
        fields = {f[:-4]: np.load(self.path(f)) for f in os.listdir(self.folder) if f.endswith(".npy")}
        return [{k: torch.tensor(v[i]) for k, v in fields.items()} for i in range(n)]


def train(net, parameters, batches, dtype):
    """PyTorch's losses."""
    p = {k: v.detach().to(dtype, copy=True).requires_grad_() for k, v in parameters.items()}
    optimiser = net.optimiser(list(p.values()), net.lr)
    return [take_step(net, p, optimiser, batch, dtype) for batch in batches]


def take_step(net, p, optimiser, batch, dtype):
    loss = net.loss(p, {k: v.to(dtype) if v.is_floating_point() else v for k, v in batch.items()})
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss.item()


def one_step(net, before, t, batch):
    """PyTorch's loss and state after step t from the state before it, in f64."""
    p, moments = {k: v.clone().requires_grad_() for k, v in before[0].items()}, before[1]
    optimiser = net.optimiser(list(p.values()), net.lr)
    for k, v in p.items():
        optimiser.state[v] = {name: x[k].clone() for name, x in moments.items()} | {"step": torch.tensor(float(t - 1))}
    loss = take_step(net, p, optimiser, batch, torch.float64)
    return loss, ({k: v.detach() for k, v in p.items()}, {name: {k: optimiser.state[p[k]][name] for k in x} for name, x in moments.items()})


def apart(a, b):
    """The relative difference of each step; infinite where one has fewer losses, or no number."""
    if len(a) != len(b) or not all(map(math.isfinite, a + b)):
        return [math.inf] * max(len(a), len(b))
    return [abs(x - y) / max(abs(x), abs(y), 1e-30) for x, y in zip(a, b)]


def within(differences, rounding, least):
    """Is each of them at most ten times the greatest that rounding made so far, or `least`?"""
    return all(d <= max(least, 10 * r) for d, r in zip(differences, itertools.accumulate(rounding, max)))


def tensors_apart(a, b):
    """Relative to the greatest element; of a gradient that is zero but for rounding (a bias before batch norm) 0."""
    greatest = b.abs().max().item()
    return (a - b).abs().max().item() / greatest if greatest > 1e-12 else a.abs().max().item()


def states_apart(a, b):
    """The greatest difference of two states, and of what."""
    each = [(tensors_apart(a[0][k], b[0][k]), k) for k in b[0]]
    each += [(tensors_apart(a[1][name][k], b[1][name][k]), f"{k}.{name}") for name in b[1] for k in b[1][name]]
    return max(each)


def steps_apart(net, ours, batches):
    """Of each step by itself: the difference of losses, that of the states after it, and of what."""
    rows = []
    for t, batch in enumerate(batches, 1):
        before, after = ours.step(t)
        loss, state = one_step(net, before, t, batch)
        rows.append((apart([ours.losses[t - 1]], [loss])[0], *states_apart(after, state)))
    return rows


def compare(name, net, args):
    folder = {t: tempfile.TemporaryDirectory() for t in ("f32", "f64")}
    ours = {t: Ours(net, args, t, folder[t].name) for t in folder}
    start, batches = ours["f32"].parameters(), ours["f32"].batches(args.steps)
    theirs = train(net, start, batches, torch.float32)
    wide = train(net, start, batches, torch.float64)  # from f32's weights: what rounding does to PyTorch itself
    f32, rounding = apart(ours["f32"].losses, theirs), apart(theirs, wide)
    steps = steps_apart(net, ours["f64"], ours["f64"].batches(args.steps))
    loss64, (state64, worst) = max(s[0] for s in steps), max(s[1:] for s in steps)
    fine = loss64 <= LOSS_APART and state64 <= STATE_APART and within(f32, rounding, 1e-4)
    word = "DIFFERENT" if not fine else "equal" if max(f32) <= 1e-4 else "equal but for rounding"
    print(f"{name:14} loss {ours['f32'].losses[0]:.4f} .. {ours['f32'].losses[-1]:.4f}  f32 {max(f32):.1e}  PyTorch f32 to f64 {max(rounding):.1e}  "
          f"f64 step by step: loss {loss64:.1e}, state {state64:.1e}  {word}", flush=True)
    if state64 > STATE_APART:
        print(f"  {worst} differs most")
    if args.verbose:
        for i, row in enumerate(zip(ours["f32"].losses, theirs, wide, ours["f64"].losses)):
            print(f"  {i + 1:3}", *(f"{x:.9f}" for x in row), f"f64 step: loss {steps[i][0]:.1e}, {steps[i][2]} {steps[i][1]:.1e}")
    return fine


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--build", default=os.environ.get("RICCI_BUILD", "."))
    ap.add_argument("--only", nargs="*")
    ap.add_argument("--steps", type=int, default=20)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--full", action="store_true", help="all channels: resnet takes minutes in f64")
    ap.add_argument("--data", help="CIFAR-10, in place of drawn digits")
    ap.add_argument("--verbose", action="store_true", help="all losses: f32, PyTorch's, its f64, f64; and each step's difference")
    args = ap.parse_args()
    args.build = os.path.abspath(args.build)
    fine = [compare(name, net, args) for name, net in NETS.items() if not args.only or name in args.only]
    sys.exit(not all(fine))


if __name__ == "__main__":
    main()
