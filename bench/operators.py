#!/usr/bin/env python3
"""Times single operators beside PyTorch, in turns, and prints JSON lines and a table in Markdown.

usage: bench/operators.py [--operators PATH] [--peer-python PATH] [--rounds 3] [--seconds 10] [--only NAME,..] [--out FILE.json]

For each operator and mode: ours (bench/operators, tuned S seconds in the first round, from the cache after it), then the peer, and again;
medians of the rounds, ratio ours / peer (below 1: ours is faster). Geometric means by group at the end.
"""
import argparse, json, math, os, shutil, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MALLOC = {"MALLOC_TOP_PAD_": str(1 << 28), "MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 33)}


class Peer:
    def __init__(self, args):
        n = str(args.threads)
        env = dict(os.environ, OMP_NUM_THREADS=n, MKL_NUM_THREADS=n, CUDA_VISIBLE_DEVICES="", **MALLOC)
        self.child = subprocess.Popen([args.peer_python, os.path.join(HERE, "peer_operators.py"), "--threads", n], env=env,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def time(self, name, mode):
        self.child.stdin.write(f"{name} {mode}\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            sys.exit("the peer ended")
        return json.loads(line)


def ours(args, env, name, mode, seconds):
    cmd = [args.operators, "--threads", str(args.threads), "--seconds", str(seconds), name, mode]
    out = subprocess.run(cmd, env=env, stdout=subprocess.PIPE, text=True)
    if out.returncode:
        sys.exit(f"{' '.join(cmd)} ended with {out.returncode}")
    return json.loads(out.stdout)


def group(name, mode):
    return f"{name.rstrip('0123456789')}* {mode}" if name[0] in "CD" else None


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--operators", default="bench/operators")
    ap.add_argument("--peer-python", default=os.environ.get("RICCI_PEER_PYTHON"))
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--seconds", type=float, default=10)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--only", help="names, separated by commas")
    ap.add_argument("--out")
    args = ap.parse_args()
    args.operators = os.path.abspath(args.operators)
    cache = tempfile.mkdtemp(prefix="ricci-bench-")
    env = dict(os.environ, RICCI_CACHE=cache)
    listed = subprocess.run([args.operators, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    only = args.only and args.only.split(",")
    peer = Peer(args) if args.peer_python else None
    rows, groups = [], {}
    print("| operator | mode | ours, ms | GFLOP/s | torch eager, ms | ours / torch |\n|---|---|---|---|---|---|")
    for line in listed.splitlines():
        name, *modes = line.split()
        for mode in modes if not only or name in only else ():
            mine, other = [], []
            for r in range(args.rounds):
                mine.append(ours(args, env, name, mode, 0.5 if r else args.seconds))
                if peer:
                    other.append(peer.time(name, mode))
            ms = statistics.median(m["ms"] for m in mine)
            row = dict(name=name, mode=mode, ms=ms, gflops=statistics.median(m["gflops"] for m in mine))
            if peer:
                row.update(peer_ms=statistics.median(o["ms"] for o in other), peer=other[-1]["variant"])
                row["ratio"] = row["ms"] / row["peer_ms"]
                groups.setdefault(group(name, mode), []).append(row["ratio"])
            rows.append(row)
            cells = f"{row['peer_ms']:.4g} ({row['peer']}) | {row['ratio']:.2f}" if peer else " | "
            print(f"| {name} | {mode} | {ms:.4g} | {row['gflops']:.0f} | {cells} |", flush=True)
    for g, ratios in groups.items():
        if g:
            print(f"geometric mean {g}: {math.exp(statistics.mean(map(math.log, ratios))):.2f}")
    shutil.rmtree(cache, ignore_errors=True)
    if args.out:
        with open(args.out, "w") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
