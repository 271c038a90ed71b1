#!/usr/bin/env python3
"""Times the examples' nets, and those of bench/written.c, beside PyTorch, torch.compile and JAX, in turns: JSON lines, tables in Markdown,
and a bar chart.

usage: bench/nets.py [--build DIR] [--peer-python PATH] [--peers torch,compile,jax] [--only NAME,..|written] [--static] [--tune S]
                     [--seconds 2] [--rounds 3] [--threads 2] [--device cpu] [--out FILE.json]

--only written: the nets of bench/written.c, of which there are peers in PyTorch; without --only those of the examples. In each round a net is
timed in a process of ours and then in one of each peer and variant (bench/peer_nets.py, bench/peer_written.py), the training step and
the inference for S seconds each. Medians of the rounds; of a peer the best variant; the ratio is the best peer's figure by ours (above 1: ours is
faster, or smaller). A first step is the time from the start of the process to the end of its first training step: in the first round with
empty caches of kernels, after that with what the rounds before left there. --static: everything compiled before the first step. --tune S:
ours searches S seconds for faster kernels, after the first step. --device cuda:0: all of them on that GPU. The chart goes beside the JSON as .svg. Peers that are not there are
skipped, as this says. A net takes about a minute a round, with torch.compile two in the first.
"""
import argparse, json, math, os, shutil, statistics, subprocess, sys, tempfile, time

import chart, peer_process

HERE = os.path.dirname(os.path.abspath(__file__))
# nets by their names in the peers' programs, and the example with the same shapes
EXAMPLES = {"capsnet": "capsnet", "resnet18": "resnet", "resnet50": "resnet --depth 50", "mobilenet_v2": "mobilenet_v2",
            "shufflenet": "shufflenet", "lstm": "lstm", "mi_lstm": "mi_lstm", "scrn": "scrn", "sublstm": "sublstm", "lltm": "lltm",
            "bert": "bert", "gpt": "gpt"}
WRITTEN = ("gat", "points", "mamba", "hyena", "retnet", "swin", "unet", "wavenet", "vqvae", "automaton", "kan", "experts",
           "fno", "transformer", "quaternion", "pixelcnn", "bayes", "volume",
           "ctc", "vocoder", "butterfly", "molecules", "involution", "interactions", "deformable", "rotate", "video", "edges",
           "diffusion")
# the program of each net, and its options
NETS = {**{n: f"examples/{c} --bench" for n, c in EXAMPLES.items()}, **{n: f"bench/written {n}" for n in WRITTEN}}
FIGURES = {"step_ms": "training step, ms", "infer_ms": "inference, ms", "first_s": "first step, caches empty, s",
           "again_s": "first step, caches full, s", "peak_mb": "peak memory of training, MB"}


def line_of(cmd, env):
    """What a process prints last, as JSON; {"error": ..} when it fails."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(cmd, env=env, cwd=folder, capture_output=True, text=True)
    try:
        if run.returncode == 0:
            return json.loads(run.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        pass
    said = (run.stderr.strip() or run.stdout.strip()).splitlines()
    return {"error": f"ended with {run.returncode}: {said[-1] if said else ''}"[:300]}


def ours(args, net, folder):
    program, *options = NETS[net].split()
    more = ["--static"] * args.static + (["--tune", str(args.tune)] if args.tune else [])
    return line_of([os.path.join(args.build, program), *options, "--threads", str(args.threads), "--seconds",
                    str(args.seconds), "--device", args.device, *more], dict(os.environ, RICCI_CACHE=folder))


def peer_program(net):
    return os.path.join(HERE, "peer_written.py" if net in WRITTEN else "peer_nets.py")


def theirs(args, net, peer, variant, folder):
    return line_of([args.peer_python, peer_program(net), "--peer", peer, "--net", net, "--variant", variant, "--threads",
                    str(args.threads), "--seconds", str(args.seconds), "--device", args.device, "--start", repr(time.time())],
                   peer_process.environment(args.threads, folder, args.device))


def rounds_of(args, net, variants, folder):
    """Rows of all rounds of a net, each printed as a line of JSON; variants: (who, variant) of peers."""
    rows = []
    for number in range(args.rounds):
        for who, variant in [("ricci", "")] + variants:
            cache = os.path.join(folder, f"{net}-{who}-{variant}")
            os.makedirs(cache, exist_ok=True)
            load = os.getloadavg()[0]
            row = ours(args, net, cache) if who == "ricci" else theirs(args, net, who, variant, cache)
            if number and "first_s" in row:
                row["again_s"] = row.pop("first_s")
            figures = {k: float(f"{row[k]:.4g}") for k in FIGURES if k in row}
            rows.append(dict(net=net, who=who, variant=variant, round=number + 1, load=round(load, 1), **figures,
                             **{k: v for k, v in row.items() if k == "error"}))
            print(json.dumps(rows[-1]), flush=True)
            if "error" in row:
                print(f"{net}, {who} {variant}: {row['error']}", file=sys.stderr)
    return rows


def best_of(rows, figure):
    """{who: (median of the rounds, variant)} of the best variants."""
    values = {}
    for r in rows:
        if figure in r:
            values.setdefault((r["who"], r["variant"]), []).append(r[figure])
    best = {}
    for (who, variant), v in values.items():
        best[who] = min(best.get(who, (math.inf, "")), (statistics.median(v), variant))
    return best


def summary_of(rows, nets):
    """For each figure and net what the chart draws: name, mode, group, value, peers, and ratios where there are peers."""
    out = []
    for figure, words in FIGURES.items():
        for net in nets:
            best = best_of([r for r in rows if r["net"] == net], figure)
            if "ricci" not in best:
                continue
            value = best.pop("ricci")[0]
            row = dict(name=net, mode=words.rsplit(",", 1)[0], group=figure, value=value,
                       peers={p: dict(value=v, variant=n) for p, (v, n) in best.items()})
            if best and value > 0:
                row["ratios"] = {p: v / value for p, (v, _) in best.items()}
                row["ratio"] = min(row["ratios"].values())
            out.append(row)
    return out


def means_of(summary):
    """Geometric means of the ratios of each figure."""
    ratios = {}
    for r in summary:
        if "ratio" in r:
            ratios.setdefault(r["group"], []).append(r["ratio"])
    return {figure: math.exp(statistics.mean(map(math.log, v))) for figure, v in ratios.items()}


def tables_print(summary, peers, means):
    for figure, words in FIGURES.items():
        rows = [r for r in summary if r["group"] == figure]
        if not rows:
            continue
        print(f"\n| {words} | ours |" + "".join(f" {p} |" for p in peers) + (" best peer / ours |" if peers else ""))
        print("|---" * (2 + (len(peers) + 1 if peers else 0)) + "|")
        for r in rows:
            cells = [r["name"], f"{r['value']:.3g}"]
            for p in peers:
                there = r["peers"].get(p)
                cells.append(f"{there['value']:.3g} {there['variant']}" if there else "")
            if peers:
                cells.append(f"{r['ratio']:.2f}" if "ratio" in r else "")
            print("| " + " | ".join(cells) + " |")
        if figure in means:
            print(f"\ngeometric mean, {words}: {means[figure]:.2f}")


def processor():
    with open("/proc/cpuinfo") as f:
        return next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "unknown processor")


def arguments():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--build", default=".")
    ap.add_argument("--peer-python", default=os.environ.get("RICCI_PEER_PYTHON"))
    ap.add_argument("--peers", default="torch,compile,jax", help="what the ratio is to: the best of them; '' for none")
    ap.add_argument("--only", help="nets, separated by commas")
    ap.add_argument("--static", action="store_true")
    ap.add_argument("--tune", type=float, default=0)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--device", default="cpu")
    ap.add_argument("--seconds", type=float, default=2)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--out")
    args = peer_process.parsed(ap)
    args.peers = [p for p in args.peers.split(",") if p]
    if not set(args.peers) <= {"torch", "compile", "jax"}:
        ap.error("--peers takes torch, compile, jax")
    args.only = list(WRITTEN) if args.only == "written" else args.only.split(",") if args.only else list(EXAMPLES)
    if not set(args.only) <= set(NETS):
        ap.error(f"--only takes {', '.join(NETS)}")
    if args.rounds < 1 or args.seconds < 0 or args.threads < 1:
        ap.error("--rounds and --threads are at least 1, --seconds at least 0")
    return args


def main():
    args = arguments()
    nets = [n for n in NETS if n in args.only]
    # an old binary would time old kernels
    programs = sorted({NETS[n].split()[0] for n in nets})
    if subprocess.run(["make", "-C", args.build, "--no-print-directory", "-s", *programs]).returncode:
        sys.exit(f"bench/nets.py: cannot make {' '.join(programs)} in {args.build}")
    peers, skipped = peer_process.there(args.peer_python, args.peers)
    for name, why in skipped.items():
        print(f"skipped: {name} ({why})", file=sys.stderr)
    listed = {}
    for program in sorted({peer_program(n) for n in nets} if peers else ()):
        listed.update(line_of([args.peer_python, program, "--list"], os.environ))
    if "error" in listed:
        sys.exit(f"the list of the peers' nets: {listed['error']}")
    title = f"{args.threads} threads, f32, {processor() if args.device == 'cpu' else args.device}"
    rows, folder = [], tempfile.mkdtemp(prefix="ricci-bench-")
    try:
        for net in nets:
            rows += rounds_of(args, net, [(p, v) for p in peers for v in listed[net][p]], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    summary = summary_of(rows, nets)
    means = means_of(summary)
    print(f"\n{title}")
    tables_print(summary, peers, means)
    if args.out:
        what = "time or memory"
        with open(args.out, "w") as f:
            json.dump(dict(title=title, what=what, skipped=skipped, rows=summary, runs=rows, means=means), f, indent=1)
        with open(os.path.splitext(args.out)[0] + ".svg", "w") as f:
            f.write(chart.chart(summary, title, what))
    sys.exit(any("error" in r for r in rows))


if __name__ == "__main__":
    main()
