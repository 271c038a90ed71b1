#!/usr/bin/env python3
"""Times single operators beside PyTorch, torch.compile, JAX and TVM, in turns; a table in Markdown, JSON, and a bar chart.

usage: bench/operators.py [--build DIR] [--peer-python PATH] [--peers torch,compile,jax,tvm] [--only NAME|GROUP,..] [--quick]
                          [--seconds 5] [--rounds 3] [--threads 2] [--out FILE.json]

The machine is measured first (bench/machine). Then for each operator and mode: `ricci tune` searches S seconds for its kernels, and in
each round ours is timed (from the cache) and then each peer. Medians of the rounds; the ratio is the time of the best peer by ours (above
1: ours is faster). Geometric means by group at the end; the chart goes beside the JSON as .svg. Without a Python that has the peers our own
figures still come. Operators that need what the processor lacks come only where they are named. --quick: 1 second, one round. All of it takes about 25 minutes on two cores, with --quick a quarter of that.
"""
import argparse, json, math, os, re, shutil, statistics, subprocess, sys, tempfile

import chart, peer_process

HERE = os.path.dirname(os.path.abspath(__file__))


class Peer:
    """A process that answers what bench/peer_operators.py says; {} when it can't, or has ended. Its first answer, an empty one, says that it
    has read its packages: nothing is timed meanwhile."""

    def __init__(self, args, name, folder):
        self.child = subprocess.Popen([args.peer_python, os.path.join(HERE, "peer_operators.py"), "--peer", name, "--threads",
                                       str(args.threads)], env=peer_process.environment(args.threads, folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ready(self):
        self.child.stdout.readline()

    def time(self, operator, mode):
        try:
            self.child.stdin.write(json.dumps(dict(operator, mode=mode)) + "\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            return {}
        return json.loads(self.child.stdout.readline() or "{}")


def operand_names(text):
    """Of the operands, in their order: names that are read and not assigned."""
    assigned = {equation.split("[")[0].strip() for equation in text.split(";")}
    return [n for n in dict.fromkeys(re.findall(r"([A-Z]\w*)\[", text)) if n not in assigned]


class Ours:
    def __init__(self, args, folder):
        self.args, self.env = args, dict(os.environ, RICCI_CACHE=folder)

    def run(self, *cmd):
        out = subprocess.run([os.path.join(self.args.build, cmd[0]), *map(str, cmd[1:])], env=self.env, stdout=subprocess.PIPE, text=True)
        if out.returncode:
            sys.exit(f"{' '.join(map(str, cmd))} ended with {out.returncode}")
        return out.stdout

    def tune(self, o, mode):
        names = operand_names(o["text"])
        operands = [f"{n}={'x'.join(map(str, s))}:{'i32' if i == o['index'] else o['type']}"
                    for i, (n, s) in enumerate(zip(names, o["shapes"]), 1)]
        floats = [n for i, n in enumerate(names, 1) if i != o["index"]]
        wanted = {"forward": [[]], "dx": [floats[:1]], "dw": [floats[1:2]], "forward+grad": [[], floats]}[mode]
        for grads in wanted:
            more = [word for n in grads for word in ("--grad", n)]
            self.run("tools/ricci", "tune", o["text"], *operands, *more, "--threads", self.args.threads, "--seconds",
                     self.args.seconds / len(wanted))

    def time(self, o, mode):
        return json.loads(self.run("bench/operators", "--threads", self.args.threads, "--seconds", "0.1", o["name"], mode))


def row_of(args, o, mode, ours, peers, peak):
    ours.tune(o, mode)
    mine, other = [], {p: [] for p in peers}
    for _ in range(args.rounds):
        mine.append(ours.time(o, mode))
        for name, peer in peers.items():
            answer = peer.time(o, mode)
            if answer:
                other[name].append(answer)
    row = dict(name=o["name"], mode=mode, group=o["group"], ms=statistics.median(m["ms"] for m in mine),
               gflops=statistics.median(m["gflops"] for m in mine), peers={})
    row["peak"] = row["gflops"] / peak
    for name, answers in other.items():
        if answers:
            row["peers"][name] = dict(ms=statistics.median(a["ms"] for a in answers), variant=answers[-1]["variant"])
            if name == "torch" and "user_ms" in answers[0]:
                row["user_ms"] = statistics.median(a["user_ms"] for a in answers)
    if row["peers"]:
        row["best"] = min(row["peers"], key=lambda p: row["peers"][p]["ms"])
        row["ratios"] = {p: v["ms"] / row["ms"] for p, v in row["peers"].items()}
        row["ratio"] = row["ratios"][row["best"]]
    return row


def line_of(row, peers):
    def cell(p):
        return f"{p['ms']:.4g} {p['variant']}".strip() if p else ""
    cells = [row["name"], row["mode"], f"{row['ms']:.4g}", f"{row['gflops']:.0f}" if row["gflops"] else "",
             f"{100 * row['peak']:.0f}%" if row["gflops"] else ""]
    if peers:
        cells += [cell(row["peers"].get(p)) for p in peers]
        cells += [f"{row['user_ms']:.4g} ({row['user_ms'] / row['ms']:.2f})" if "user_ms" in row else ""]
        cells += [f"{row['ratio']:.2f}" if "ratio" in row else ""]
    return "| " + " | ".join(cells) + " |"


def means_of(rows):
    """Geometric means of the ratios by group and mode, and of all."""
    groups = {}
    for r in rows:
        if "ratio" in r:
            groups.setdefault(f"{r['group']} {r['mode']}", []).append(r["ratio"])
            groups.setdefault("all", []).append(r["ratio"])
    groups["all"] = groups.pop("all", [])
    return {g: math.exp(statistics.mean(map(math.log, v))) for g, v in groups.items() if v}


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--build", default=".")
    ap.add_argument("--peer-python", default=os.environ.get("RICCI_PEER_PYTHON"))
    ap.add_argument("--peers", default="torch,compile,jax", help="what the ratio is to: the best of them")
    ap.add_argument("--only", help="names or groups, separated by commas")
    ap.add_argument("--quick", action="store_true")
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--seconds", type=float, default=5)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--out")
    args = peer_process.parsed(ap)
    if args.quick:
        args.rounds, args.seconds = 1, 1
    if set(args.peers.split(",")) - set(peer_process.NEEDS):
        ap.error(f"--peers takes {','.join(peer_process.NEEDS)}")
    # an old binary would time old kernels
    subprocess.run(["make", "-C", args.build, "--no-print-directory", "-s", "tools/ricci", "bench/operators", "bench/machine"], check=True)
    folder = tempfile.mkdtemp(prefix="ricci-bench-")
    ours = Ours(args, folder)
    machine = json.loads(ours.run("bench/machine", "--threads", args.threads, "--seconds", 0.05 if args.quick else 0.2))
    peak = machine[f"threads_{args.threads}"]["f32_gflops"]
    listed = [json.loads(line) for line in ours.run("bench/operators", "--list").splitlines()]
    only = args.only and args.only.split(",")
    found, skipped = peer_process.there(args.peer_python, args.peers.split(","))
    peers = {name: Peer(args, name, os.path.join(folder, name)) for name in found}
    for name, why in skipped.items():
        print(f"skipped: {name} ({why})", file=sys.stderr)
    for peer in peers.values():
        peer.ready()
    title = f"{args.threads} threads, f32, {machine['isa']}, {peak:.0f} GFLOP/s of multiply-adds"
    print(f"{title}\n\n| operator | mode | ours, ms | GFLOP/s | of peak |" + "".join(f" {p}, ms |" for p in peers) +
          (" user, ms (by ours) | best peer / ours |" if peers else ""))
    print("|---" * (5 + (len(peers) + 2 if peers else 0)) + "|", flush=True)
    rows = []
    for o in listed:
        for mode in o["modes"].split():
            if o["name"] in only or o["group"] in only if only else o["needs"] in machine["isa"]:
                rows.append(row_of(args, o, mode, ours, peers, peak))
                print(line_of(rows[-1], peers), flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    means = means_of(rows)
    for group, mean in means.items():
        print(f"{'' if group != next(iter(means)) else chr(10)}geometric mean {group}: {mean:.2f}")
    if args.out:
        with open(args.out, "w") as f:
            json.dump(dict(title=title, machine=machine, rows=rows, means=means), f, indent=1)
        with open(os.path.splitext(args.out)[0] + ".svg", "w") as f:
            f.write(chart.chart(rows, title))


if __name__ == "__main__":
    main()
