"""What the benches of whole trainings (capsnet.py, lstm.py) share: an example and its peer in turns, JSON lines, a table.

Start: wall time from exec to the end of the first training step, with an empty and with a full kernel cache. Peer:
bench/peer_NAME.py in a Python that has torch (RICCI_PEER_PYTHON; make bench-peers installs one in the build folder);
without it our own figures still come.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
# glibc told to keep freed memory: without it the peer loses up to 40% in page faults.
MALLOC = {"MALLOC_TOP_PAD_": str(1 << 28), "MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 33)}


def timed(cmd, env):
    """Wall seconds, peak MB and output of one process, and the seconds to its first line."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        child = subprocess.Popen(cmd, env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        out = child.stdout.readline()
        first = time.time() - start
        out += child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            sys.exit(f"{' '.join(cmd)} ended with {child.returncode}")
        return time.time() - start, usage.ru_maxrss / 1024, out, first


class Ours:
    """The example as users run it; benches say by step_ms what the time of a step is."""

    def __init__(self, args):
        self.batch = args.batch
        self.cmd = [args.program, "--batch", str(args.batch), "--threads", str(args.threads)]
        self.cache = tempfile.mkdtemp(prefix="ricci-bench-")
        self.env = dict(os.environ, RICCI_CACHE=self.cache)

    def steps(self, n, *more):
        return timed(self.cmd + ["--steps", str(n), *more], self.env)

    def first(self):
        """Seconds to the end of the first step, whose loss is printed then, with an empty cache."""
        shutil.rmtree(self.cache, ignore_errors=True)
        os.makedirs(self.cache)
        return self.steps(1)[3]


def peer(args, variant):
    cmd = [args.peer_python, os.path.join(HERE, f"peer_{args.name}.py"), "--batch", str(args.batch), "--threads",
           str(args.threads), "--variant", variant, "--start", repr(time.time())]
    n = str(args.threads)
    env = dict(os.environ, OMP_NUM_THREADS=n, MKL_NUM_THREADS=n, CUDA_VISIBLE_DEVICES="", **MALLOC)
    return json.loads(timed(cmd, env)[2].splitlines()[-1])


def main(doc, name, ours_class, variants, batch):
    ap = argparse.ArgumentParser(description=doc.splitlines()[0])
    ap.add_argument(f"--{name}", dest="program", default=f"examples/{name}")
    ap.add_argument("--peer-python", default=os.environ.get("RICCI_PEER_PYTHON"))
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--batch", type=int, default=batch)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--out")
    args = ap.parse_args()
    args.name, args.program = name, os.path.abspath(args.program)
    ours, rows = ours_class(args), []

    def row(who, **figures):
        rows.append(dict(who=who, **{k: round(v, 4) for k, v in figures.items()}))
        print(json.dumps(rows[-1]), flush=True)

    for _ in range(args.rounds):
        row("ricci, empty cache", first_s=ours.first())
    ours.steps(1, "--static")  # fills the cache
    for _ in range(args.rounds):
        row("ricci static, full cache", first_s=ours.steps(1, "--static")[3])
    for _ in range(args.rounds):
        row("ricci static", **ours.step_ms("--static"))
        row("ricci dynamic", **ours.step_ms())
        if args.peer_python:
            for variant in variants:
                row(f"torch eager {variant}", **peer(args, variant))
    shutil.rmtree(ours.cache, ignore_errors=True)

    print("\n| | step ms | first step s | peak MB |\n|---|---|---|---|")
    median = {}
    for who in dict.fromkeys(r["who"] for r in rows):
        cells = []
        for key in ("step_ms", "first_s", "peak_mb"):
            values = [r[key] for r in rows if r["who"] == who and key in r]
            median[who, key] = statistics.median(values) if values else None
            cells.append(f"{median[who, key]:.3g}" if values else "")
        print(f"| {who} | " + " | ".join(cells) + " |")
    best = min((v for (w, k), v in median.items() if w.startswith("torch") and k == "step_ms"), default=None)
    if best:
        for who in ("ricci static", "ricci dynamic"):
            print(f"{who}: {median[who, 'step_ms'] / best:.2f} of the best peer's time a step")
    if args.out:
        with open(args.out, "w") as f:
            json.dump(rows, f, indent=1)

