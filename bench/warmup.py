#!/usr/bin/env python3
"""Draws the first seconds of a training from an empty cache of kernels beside PyTorch's, torch.compile's and JAX's: steps done over the
seconds since the process was started, and the time of each step. Tells whether a peer has ever done more steps.

usage: bench/warmup.py [--net capsnet] [--seconds 60] [--build DIR] [--peer-python PATH] [--peers torch,compile,jax] [--threads 2]
                       [--out FILE.svg]

Each process runs alone, so all have the same processors. A table in Markdown: steps done after 1, 2, 5, 10, 20, .. seconds, and the longest time
at which a peer was ahead. Peers are as users of each would write the net, in the first variant of bench/peer_nets.py.
"""
import argparse, bisect, csv, os, statistics, subprocess, sys, tempfile, time

import nets, peer_process
from chart import COLOUR

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 300, 64, 96, 40, 44
OURS = "#3b78b5"


def read(path):
    """[(end of a step in s since the start, its ms)]"""
    with open(path) as f:
        return [(float(r["end_s"]), float(r["step_ms"])) for r in csv.DictReader(f)]


def ours(args, folder):
    program, *options = nets.NETS[args.net].split()
    path = os.path.join(folder, "ours.csv")
    subprocess.run([os.path.join(args.build, "examples", program), "--bench", "--threads", str(args.threads), "--seconds", str(args.seconds),
                    "--curve", path, *options], env=dict(os.environ, RICCI_CACHE=os.path.join(folder, "cache")), cwd=folder, check=True)
    return read(path)


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


def panel(curves, seconds, top, title, high, value, unit):
    """One chart: lines of value(steps) over the seconds."""
    def x(t):
        return LEFT + t / seconds * (WIDTH - LEFT - RIGHT)

    def y(v):
        return top + HEIGHT - BOTTOM - min(v, high) / high * (HEIGHT - TOP - BOTTOM)

    out = [f'<text x="8" y="{top + 20}" font-size="14" font-weight="bold">{title}</text>']
    for k in range(5):
        v, t = high * k / 4, seconds * k / 4
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(v):.1f}" y2="{y(v):.1f}"/>'
                   f'<text x="{LEFT - 8}" y="{y(v) + 4:.1f}" text-anchor="end">{v:.4g}{unit}</text>'
                   f'<text x="{x(t):.1f}" y="{top + HEIGHT - BOTTOM + 18}" text-anchor="middle">{t:g} s</text>')
    for name, steps in curves.items():
        colour = COLOUR.get(name, OURS)
        points = [(t, v) for t, v in value(steps) if t <= seconds]
        points = points[:: max(1, len(points) // 600)]
        out.append(f'<polyline points="{" ".join(f"{x(t):.1f},{y(v):.1f}" for t, v in points)}" fill="none" stroke="{colour}" '
                   'stroke-width="1.6"/>')
        if points:
            out.append(f'<text x="{x(points[-1][0]) + 6:.1f}" y="{y(points[-1][1]) + 4:.1f}" style="fill:{colour}">{name}</text>')
    return out


def picture(curves, net, seconds):
    most = max(done(steps, seconds) for steps in curves.values())
    slow = sorted(ms for steps in curves.values() for _, ms in steps)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {2 * HEIGHT}" width="{WIDTH}" height="{2 * HEIGHT}" '
           'font-family="sans-serif" font-size="12"><style>text{fill:#333}.grid{stroke:#e4e4e4}</style>',
           f'<rect width="{WIDTH}" height="{2 * HEIGHT}" fill="#fff"/>']
    out += panel(curves, seconds, 0, f"{net}: steps done", most, lambda s: [(0, 0)] + [(end, k + 1) for k, (end, _) in enumerate(s)], "")
    out += panel(curves, seconds, HEIGHT, f"{net}: a step", 1.2 * slow[int(0.98 * (len(slow) - 1))], lambda s: s, " ms")
    return "\n".join(out + ["</svg>", ""])


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--net", choices=nets.NETS, default="capsnet")
    ap.add_argument("--seconds", type=float, default=60)
    ap.add_argument("--build", default=os.path.dirname(nets.HERE))
    ap.add_argument("--peer-python", default=os.environ.get("RICCI_PEER_PYTHON", sys.executable))
    ap.add_argument("--peers", default="torch,compile,jax")
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--out", help="the chart")
    args = ap.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        curves = {"ricci": ours(args, folder)}
        for peer in filter(None, args.peers.split(",")):
            try:
                curves[peer] = theirs(args, peer, folder)
            except (subprocess.CalledProcessError, OSError) as e:
                print(f"{peer} is left out: {e}", file=sys.stderr)
    table(curves, args.seconds)
    if args.out:
        with open(args.out, "w") as f:
            f.write(picture(curves, args.net, args.seconds))


if __name__ == "__main__":
    main()
