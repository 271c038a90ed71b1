#!/usr/bin/env python3
"""Draws the first seconds of a training from an empty cache of kernels beside PyTorch's, torch.compile's and JAX's, over the seconds since
each process was started: the time of a step, with our swaps of kernels marked and the largest gains named, and the steps done. Tells whether
a peer has ever done more steps.

usage: bench/warmup.py [--net capsnet] [--seconds 60] [--build DIR] [--peer-python PATH] [--peers torch,compile,jax] [--threads 2]
                       [--out FILE.svg]

Each process runs alone, so all have the same processors. A table in Markdown: steps done after 1, 2, 5, 10, 20, .. seconds, and the longest time
at which a peer was ahead. Peers are as users of each would write the net, in the first variant of bench/peer_nets.py; those that are not there
are left out, as this says (--peers '': ours alone).
"""
import argparse, bisect, csv, html, json, math, os, re, statistics, subprocess, sys, tempfile, time

import nets, peer_process
from axes import LEFT, Axis, Panel, document
from chart import COLOUR

WIDTH, HEIGHT = 860, 320
OURS, SWAP, NAMED = "#3b78b5", "#b8b8b8", "#c4503d"
MOST_NAMED = 5


def read(path):
    """[(end of a step in s since the start, its ms)]"""
    with open(path) as f:
        return [(float(r["end_s"]), float(r["step_ms"])) for r in csv.DictReader(f)]


def ours(args, folder):
    """Our steps and, for a picture, swaps. (A trace takes about 1 us a launch.)"""
    program, *options = nets.NETS[args.net].split()
    path, trace = os.path.join(folder, "ours.csv"), os.path.join(folder, "trace.json")
    subprocess.run([os.path.join(args.build, program), *options, "--threads", str(args.threads), "--seconds", str(args.seconds),
                    "--curve", path, *(["--trace", trace] if args.out else [])],
                   env=dict(os.environ, RICCI_CACHE=os.path.join(folder, "cache")), cwd=folder, check=True)
    return read(path), read_swaps(trace) if args.out else []


class Swap:
    """A kernel that came in: when, its first equation, ms of a launch before and after (0: not known) and launches in a step."""

    def __init__(self, at, name):
        self.at, self.name, self.before, self.after, self.launches = at, name, 0, 0, 0


def read_swaps(path):
    """Those of a trace. What a swap gains is told in a later mark of the same name."""
    with open(path) as f:
        events = json.load(f)
    swaps, waiting, spans, steps = [], {}, {}, 0
    for e in events:
        kind, name = e.get("cat"), e["name"]
        if kind == "step":
            steps += 1
        elif kind == "kernel":
            spans[name] = spans.get(name, 0) + 1
        elif kind == "swap":
            swaps.append(Swap(e["ts"] / 1e6, name))
            waiting[name] = swaps[-1]
        elif kind == "gain" and name in waiting:
            after, before = re.fullmatch(r"([\d.]+) us instead of ([\d.]+)", e["args"]["detail"]).groups()
            swap = waiting.pop(name)
            swap.before, swap.after = float(before) / 1e3, float(after) / 1e3
    for s in swaps:
        s.launches = round(spans.get(s.name, 0) / max(steps, 1)) or 1
    return swaps


def gains(swaps, seconds):
    """Those that save most of a step, the largest first."""
    saving = [s for s in swaps if s.at <= seconds and s.before > s.after]
    return sorted(saving, key=lambda s: (s.after - s.before) * s.launches)[:MOST_NAMED]


def theirs(args, peer, folder):
    path = os.path.join(folder, peer + ".csv")
    cache = os.path.join(folder, "cache-" + peer)
    os.makedirs(cache)
    subprocess.run([args.peer_python, os.path.join(nets.HERE, "peer_nets.py"), "--peer", peer, "--net", args.net, "--threads",
                    str(args.threads), "--seconds", str(args.seconds), "--start", repr(time.time()), "--curve", path],
                   env=peer_process.environment(args.threads, cache), cwd=folder, check=True)
    return read(path)


def done(steps, at):
    return bisect.bisect_right([end for end, _ in steps], at)


def behind(mine, other, seconds):
    """The last moment at which the other had done more steps; 0: never."""
    moments = [end for end, _ in other if end <= seconds and done(other, end) > done(mine, end)]
    return max(moments, default=0)


def table(curves, seconds):
    marks = [t for t in (1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 180, 300) if t <= seconds]
    print("| | " + " | ".join(f"{t} s" for t in marks) + " | first step, s | median of the last quarter, ms | ahead of us until, s |")
    print("|---|" + "---|" * (len(marks) + 3))
    for name, steps in curves.items():
        late = [ms for end, ms in steps if end > 0.75 * seconds]
        until = behind(curves["ricci"], steps, seconds)
        print(f"| {name} | " + " | ".join(str(done(steps, t)) for t in marks) + f" | {steps[0][0]:.2f} | "
              f"{statistics.median(late) if late else float('nan'):.1f} | {'' if name == 'ricci' else f'{until:.1f}' if until else 'never'} |")


def steps_done(steps, seconds):
    return thinned([(0, 0)] + [(end, k + 1) for k, (end, _) in enumerate(steps) if end <= seconds])


def thinned(points):
    """At most 1000: of neighbours the median, by the second number."""
    every = -(-len(points) // 1000)
    return [sorted(points[i : i + every], key=lambda p: p[1])[(min(every, len(points) - i) - 1) // 2] for i in range(0, len(points), every)]


def swaps_mark(panel, swaps, seconds):
    """A thin line where a kernel is swapped, and the numbers of those that gain most."""
    best = gains(swaps, seconds)
    for s in swaps:
        if s.at <= seconds:
            named = s in best
            panel.line(panel.x(s.at), panel.x(s.at), panel.y0, panel.y1, f'class="swap" stroke="{NAMED if named else SWAP}" stroke-width="0.7"')
    last = [-math.inf] * MOST_NAMED  # of each line of numbers: neighbours stand below each other
    for number, s in sorted(enumerate(best, 1), key=lambda p: p[1].at):
        x = panel.x(s.at) + 3
        row = next(k for k, end in enumerate(last) if x - end >= 12)
        last[row] = x
        panel.text(x, panel.y0 + 12 * (row + 1), str(number), f'font-weight="bold" style="fill:{NAMED}"')
    return best


def swaps_list(swaps, best, top):
    """What the numbers mean."""
    out = [f'<text x="{LEFT}" y="{top}">thin lines: {len(swaps)} kernels swapped'
           f'{"; those that save most of a step:" if best else ""}</text>']
    for number, s in enumerate(best, 1):
        what = s.name if len(s.name) <= 76 else s.name[:73] + "..."
        saved = (s.before - s.after) * s.launches
        out.append(f'<text x="{LEFT}" y="{top + 15 * number}"><tspan font-weight="bold" style="fill:{NAMED}">{number}</tspan> '
                   f'at {s.at:.1f} s, {saved:.2g} ms less ({s.launches} x {s.before:.3g} -> {s.after:.3g} ms): {html.escape(what)}</text>')
    return out


def picture(curves, swaps, net, seconds):
    slow = [ms for steps in curves.values() for end, ms in steps if end <= seconds]
    time = Panel(WIDTH, HEIGHT, f"{net}: time of a step while it trains", Axis(0, seconds, "seconds since the process was started"),
                 Axis(0.8 * min(slow), 1.1 * max(slow), "a step, ms (logarithmic)", log=True))
    below = HEIGHT + 15 * (2 + MOST_NAMED)
    done_by = Panel(WIDTH, HEIGHT, f"{net}: steps done", Axis(0, seconds, "seconds since the process was started"),
                    Axis(0, max(done(steps, seconds) for steps in curves.values()), "steps"), below)
    best = swaps_mark(time, swaps, seconds)
    for name, steps in curves.items():
        colour = COLOUR.get(name, OURS)
        time.curve(name, colour, thinned([p for p in steps if p[0] <= seconds]), 1.2)
        done_by.curve(name, colour, steps_done(steps, seconds), 1.6)
    return document(WIDTH, below + HEIGHT, [time.elements(), swaps_list([s for s in swaps if s.at <= seconds], best, HEIGHT + 15),
                                            done_by.elements()])


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--net", choices=nets.EXAMPLES, default="capsnet")
    ap.add_argument("--seconds", type=float, default=60)
    ap.add_argument("--build", default=os.path.dirname(nets.HERE))
    ap.add_argument("--peer-python", default=os.environ.get("RICCI_PEER_PYTHON", sys.executable))
    ap.add_argument("--peers", default="torch,compile,jax")
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--out", help="the chart")
    args = ap.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        steps, swaps = ours(args, folder)
        curves = {"ricci": steps}
        for peer in filter(None, args.peers.split(",")):
            try:
                curves[peer] = theirs(args, peer, folder)
            except (subprocess.CalledProcessError, OSError) as e:
                print(f"{peer} is left out: {e}", file=sys.stderr)
    table(curves, args.seconds)
    if args.out:
        with open(args.out, "w") as f:
            f.write(picture(curves, swaps, args.net, args.seconds))


if __name__ == "__main__":
    main()
