#!/usr/bin/env python3
"""Does an example learn as well as the same net in PyTorch? Test errors by epoch, and both curves in one SVG.

usage: bench/parity/learning.py --data DIR [--net resnet18] [--epochs 5] [--batch 64] [--rate 0.05] [--width N] [--seeds 0]
                                [--hold-out N] [--threads 2] [--build DIR] [--keep DIR] [--out FILE.svg]

DIR holds CIFAR-10 as IDX files. Both start from the same weights and have the same optimiser, learning rate of each step
(one-cycle; PyTorch reads it from the example's CSV) and augmentation (flips, crops of the image with 4 zeros around), but draw
the order of samples and the augmentation by themselves. Test errors use running statistics. PyTorch also evaluates what the
example trained, and must get the same test error. One run says little: with 1,000 test images the standard error of its test
error is 1.5%. So --seeds 0,1,2 repeats both sides from other weights, and --hold-out N makes the last N training images test
images, too. Printed is the test error of each epoch, the mean over the seeds, and how far the means of the last epoch are apart, with the standard error of
that; exit status 1 where they are more than 1% (of the samples) apart. --keep: files of all runs stay there, and a run whose
file is there is not repeated.
"""
import argparse, csv, gzip, os, statistics, subprocess, sys, tempfile

import h5py
import numpy as np
import torch
import torch.nn.functional as F

from parity import NETS

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 56, 110, 40, 48
COLOUR = {"ricci": "#2b8c6b", "PyTorch": "#d9822b"}


def idx(folder, name):
    with gzip.open(os.path.join(folder, name + ".gz")) as f:
        data = f.read()
    shape = np.frombuffer(data, ">i4", data[3], 4)
    return torch.tensor(np.frombuffer(data, np.uint8, offset=4 + 4 * len(shape)).reshape(shape))


def write_idx(path, data):
    with gzip.open(path, "wb", compresslevel=1) as f:
        f.write(bytes([0, 0, 8, data.dim()]) + np.array(data.shape, ">i4").tobytes() + data.numpy().tobytes())


def hold_out(source, n, folder):
    """Copies the data set; its last n training samples become test samples."""
    os.makedirs(folder, exist_ok=True)
    for what in ("images-idx4-ubyte", "labels-idx1-ubyte"):
        train, test = (idx(source, f"cifar10-{name}-{what}") for name in ("train", "t1k"))
        for name, data in (("train", train[:-n]), ("t1k", torch.cat([test, train[-n:]]))):
            write_idx(os.path.join(folder, f"cifar10-{name}-{what}.gz"), data)
    return folder


def part(folder, name):
    images, labels = (idx(folder, f"cifar10-{name}-{what}") for what in ("images-idx4-ubyte", "labels-idx1-ubyte"))
    return images.float() / 255, labels.long()


def rows_of(path, what):
    with open(path) as f:
        return [r for r in csv.DictReader(f) if r["of"] == what]


def run_ours(net, args, seed, folder):
    """Trains the example: first.h5, last.h5 and ricci.csv in the folder."""
    path = {n: os.path.join(folder, n) for n in ("first.h5", "last.h5", "ricci.csv")}
    if os.path.exists(path["ricci.csv"]):
        return
    cmd = [os.path.join(args.build, "examples", net.program[0]), *net.program[1:], "--data", args.data, "--batch", str(args.batch),
           "--epochs", str(args.epochs), "--lr", str(args.rate), "--schedule", "one-cycle", "--augment", "--seed", str(seed),
           "--threads", str(args.threads)] + (["--width", str(args.width)] if args.width else [])
    subprocess.run([*cmd, "--steps", "0", "--checkpoint", path["first.h5"], "--overwrite"], check=True)
    unfinished = path["ricci.csv"] + ".part"
    subprocess.run([*cmd, "--resume", path["first.h5"], "--checkpoint", path["last.h5"], "--csv", unfinished, "--overwrite"], check=True)
    os.rename(unfinished, path["ricci.csv"])


def augmented(x, rng):
    b, _, h, w = x.shape
    flipped = torch.where(torch.rand(b, 1, 1, 1, generator=rng) < 0.5, x.flip(3), x)
    padded, at = F.pad(flipped, (4, 4, 4, 4)), torch.randint(0, 9, (2, b), generator=rng)
    return torch.stack([padded[i, :, y:y + h, x:x + w] for i, (y, x) in enumerate(at.T.tolist())])


def evaluated(net, p, test):
    with torch.no_grad():
        wrong = sum((net.net(dict(p, evaluate=True), x).argmax(1) != y).sum().item() for x, y in zip(*(t.split(250) for t in test)))
    return wrong / len(test[1])


def parameters(path):
    """What is trained, and the running statistics, in a checkpoint."""
    with h5py.File(path) as f:
        return ({k: torch.tensor(v[...]) for k, v in f["parameters"].items()},
                {k: torch.tensor(v[...]) for k, v in f["state"].items() if ".running_" in k})


def check_evaluation(net, args, folder, ours):
    """Is the example's last test error the one of its last checkpoint in PyTorch? (But for samples whose scores are equal.)"""
    trained, running = parameters(os.path.join(folder, "last.h5"))
    theirs = evaluated(net, dict(trained, **running), part(args.data, "t1k"))
    if abs(theirs - ours) > 1e-3:
        sys.exit(f"learning.py: {folder}/last.h5 has the test error {ours} in the example, {theirs} in PyTorch")


def run_torch(net, args, seed, folder):
    """The same with PyTorch, from first.h5 and the rates of ricci.csv: torch.csv."""
    out = os.path.join(folder, "torch.csv")
    if os.path.exists(out):
        return
    torch.set_num_threads(args.threads)
    rng = torch.Generator().manual_seed(seed + 1)
    trained, running = parameters(os.path.join(folder, "first.h5"))
    p = dict(trained, **running)
    for t in trained.values():
        t.requires_grad_()
    rates = [float(r["rate"]) for r in rows_of(os.path.join(folder, "ricci.csv"), "step")]
    (x, y), test = part(args.data, "train"), part(args.data, "t1k")
    if len(rates) != len(x) // args.batch * args.epochs:
        sys.exit(f"learning.py: {len(rates)} steps in the example, {len(x) // args.batch * args.epochs} expected")
    optimiser, step, lines = net.optimiser(list(trained.values()), net.lr), 0, ["of,epoch,step,loss,test_error"]
    for epoch in range(args.epochs):
        total, order = 0.0, torch.randperm(len(x), generator=rng)
        batches = order[:len(order) // args.batch * args.batch].split(args.batch)
        for chosen in batches:
            for group in optimiser.param_groups:
                group["lr"] = rates[step]
            loss = net.loss(p, {"samples": augmented(x[chosen], rng), "labels": y[chosen]})
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total, step = total + loss.item(), step + 1
        lines.append(f"epoch,{epoch + 1},{step},{total / len(batches):.6g},{evaluated(net, p, test):.6g}")
        print("PyTorch", lines[-1], flush=True)
    with open(out, "w") as f:
        f.write("\n".join(lines) + "\n")


def picture(title, errors):
    """Test error in percent over epochs, a curve for each program."""
    high, epochs = max(max(e) for e in errors.values()), len(next(iter(errors.values())))
    top = next(v for v in (5, 10, 20, 40, 60, 80, 100) if v >= 100 * high or v == 100)

    def x(epoch):
        return LEFT + (epoch - 1) / max(epochs - 1, 1) * (WIDTH - LEFT - RIGHT)

    def y(percent):
        return HEIGHT - BOTTOM - percent / top * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="12"><style>text{fill:#333}.grid{stroke:#e4e4e4}</style>',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
           f'<text x="8" y="20" font-size="14" font-weight="bold">{title}</text>']
    for i in range(5):
        v = top * i / 4
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(v):.1f}" y2="{y(v):.1f}"/>'
                   f'<text x="{LEFT - 8}" y="{y(v) + 4:.1f}" text-anchor="end">{v:g}%</text>')
    for e in range(1, epochs + 1):
        out.append(f'<text x="{x(e):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{e}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">epoch</text>')
    ends = sorted((e[-1], name) for name, e in errors.items())
    for at, (last, name) in enumerate(ends):
        points = " ".join(f"{x(i + 1):.1f},{y(100 * v):.1f}" for i, v in enumerate(errors[name]))
        label = y(100 * ends[0][0]) + 4 - 16 * at if y(100 * ends[0][0]) - y(100 * last) < 16 else y(100 * last) + 4
        out.append(f'<polyline points="{points}" fill="none" stroke="{COLOUR[name]}" stroke-width="2"/>'
                   f'<text x="{WIDTH - RIGHT + 8}" y="{label:.1f}" style="fill:{COLOUR[name]}">{name} {100 * last:.1f}%</text>')
    return "\n".join(out + ["</svg>", ""])


def errors_of(net, args, seed, folder):
    """Test errors by epoch of both programs."""
    os.makedirs(folder, exist_ok=True)
    run_ours(net, args, seed, folder)
    run_torch(net, args, seed, folder)
    errors = {who: [float(r["test_error"]) for r in rows_of(os.path.join(folder, name), "epoch")]
              for who, name in (("ricci", "ricci.csv"), ("PyTorch", "torch.csv"))}
    check_evaluation(net, args, folder, errors["ricci"][-1])
    return errors


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--data", required=True)
    ap.add_argument("--net", default="resnet18", choices=["resnet18", "mobilenet_v2", "shufflenet"])
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--rate", type=float, default=0.05)
    ap.add_argument("--width", help="as the example's option; usual: the whole net")
    ap.add_argument("--seeds", type=lambda text: [int(v) for v in text.split(",")], default=[0], help="0,1,2: as many runs of each side")
    ap.add_argument("--hold-out", type=int, default=0, help="so many training images are test images instead")
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--build", default=os.environ.get("RICCI_BUILD", "."))
    ap.add_argument("--keep")
    ap.add_argument("--out")
    args = ap.parse_args()
    args.build, args.data, net = os.path.abspath(args.build), os.path.abspath(args.data), NETS[args.net]
    with tempfile.TemporaryDirectory() as folder:
        if args.hold_out:
            args.data = hold_out(args.data, args.hold_out, os.path.join(args.keep or folder, f"without{args.hold_out}"))
        runs = [errors_of(net, args, seed, os.path.join(args.keep or folder, f"seed{seed}")) for seed in args.seeds]
    errors = {who: [statistics.mean(e) for e in zip(*(run[who] for run in runs))] for who in COLOUR}
    print("| epoch | " + " | ".join(errors) + " |\n|---|---|---|")
    for i, row in enumerate(zip(*errors.values())):
        print(f"| {i + 1} | " + " | ".join(f"{100 * v:.2f}%" for v in row) + " |")
    apart = [run["ricci"][-1] - run["PyTorch"][-1] for run in runs]
    by_chance = f", standard error {100 * statistics.stdev(apart) / len(apart) ** 0.5:.2f}%" if len(apart) > 1 else ""
    print(f"ricci - PyTorch by seed: {', '.join(f'{100 * v:+.2f}%' for v in apart)}; mean {100 * statistics.mean(apart):+.2f}%{by_chance}")
    if args.out:
        with open(args.out, "w") as f:
            f.write(picture(f"Test error of {args.net} on CIFAR-10's first 20,000 images", errors))
    sys.exit(abs(statistics.mean(apart)) > 0.01)


if __name__ == "__main__":
    main()
