"""A chart of curves as SVG: the seconds of each stage over the number of layers, both logarithmic.

usage: curve.py RESULTS.json CHART.svg        RESULTS: what bench/scale --out writes
Grey: what is linear in the layers.
"""
import json, math, sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 420, 64, 110, 40, 48
COLOUR = ["#2b8c6b", "#d9822b", "#8a4fbf", "#333333"]


def chart(stages, rows):
    curves = {s: [r["seconds"][k] for r in rows] for k, s in enumerate(stages)}
    curves["together"] = [sum(r["seconds"]) for r in rows]
    layers, every = [r["layers"] for r in rows], [s for c in curves.values() for s in c if s > 0]
    low, high = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))

    def x(n):
        return LEFT + math.log(n / layers[0]) / math.log(max(layers[-1] / layers[0], 2)) * (WIDTH - LEFT - RIGHT)

    def y(s):
        return HEIGHT - BOTTOM - (math.log10(s) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="12"><style>text{fill:#333}.grid{stroke:#e4e4e4}</style>',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
           '<text x="8" y="20" font-size="14" font-weight="bold">Seconds before the first step, by layers of the net</text>']
    for e in range(low, high + 1):
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(10 ** e):.1f}" y2="{y(10 ** e):.1f}"/>'
                   f'<text x="{LEFT - 8}" y="{y(10 ** e) + 4:.1f}" text-anchor="end">{10.0 ** e:g} s</text>')
    for n in layers:
        out.append(f'<line class="grid" x1="{x(n):.1f}" x2="{x(n):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
                   f'<text x="{x(n):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{n}</text>')
    last = curves["together"][-1]
    linear = [max(last * n / layers[-1], 10.0 ** low) for n in layers]
    for (name, seconds), colour in zip([("linear", linear), *curves.items()], ["#bbbbbb", *COLOUR]):
        points = " ".join(f"{x(n):.1f},{y(s):.1f}" for n, s in zip(layers, seconds) if s > 0)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if name != "linear":
            out.append(f'<text x="{WIDTH - RIGHT + 8}" y="{y(seconds[-1]) + 4:.1f}" style="fill:{colour}">{name}</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    with open(sys.argv[1]) as f:
        data = json.load(f)
    with open(sys.argv[2], "w") as f:
        f.write(chart(data["stages"], data["rows"]))


if __name__ == "__main__":
    main()
