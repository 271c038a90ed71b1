"""A bar chart of speed-ups as SVG: a bar for each row, from 1 to the left (slower) or right (faster), logarithmic.

usage: chart.py RESULTS.json CHART.svg        RESULTS: what bench/operators.py or bench/nets.py --out writes
A row has name, mode, group, ratio (of the best peer) and ratios (of each peer by name, the dots). Rows of one group lie together.
"""
import html, json, math, sys

import axes

WIDTH, LEFT, RIGHT, TOP, ROW, GAP, LOW = 900, 230, 70, 64, 16, 6, 0.25
COLOUR = {"torch": "#d9822b", "compile": "#8a4fbf", "jax": "#2b8c6b", "tvm": "#8c2b4f"}


def chart(rows, title, what="time"):
    """The SVG. Rows without a ratio are left out."""
    rows = [r for r in rows if r.get("ratio")]
    high = 2 ** max(3, math.ceil(math.log2(max((r["ratio"] for r in rows), default=1))))

    def across(ratio):
        share = math.log(min(max(ratio, LOW), high) / LOW) / math.log(high / LOW)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    places, y = [], TOP
    for last, r in zip([None] + rows, rows):  # a gap between groups
        y += GAP if last and last["group"] != r["group"] else 0
        places.append(y)
        y += ROW
    height = y + 34
    bottom = height - 30
    out = [f'<text x="8" y="20" font-size="14" font-weight="bold">{html.escape(title)}</text>',
           f'<text x="8" y="40">bar: {what} of the best peer / ours, right of 1: ours is faster; dots: each peer</text>']
    for i, (peer, colour) in enumerate(COLOUR.items()):
        out.append(f'<circle cx="{WIDTH - 260 + 66 * i}" cy="36" r="4" fill="{colour}"/>'
                   f'<text x="{WIDTH - 252 + 66 * i}" y="40">{peer}</text>')
    tick = LOW
    while tick <= high:
        x = across(tick)
        out.append(f'<line class="{"one" if tick == 1 else "grid"}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{bottom}"/>'
                   f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>')
        tick *= 2
    for y, r in zip(places, rows):
        one, end = across(1), across(r["ratio"])
        colour = "#3b78b5" if r["ratio"] >= 1 else "#c4503d"
        out.append(f'<text x="{LEFT - 8}" y="{y + 10}" text-anchor="end">{html.escape(r["name"])} {r["mode"]}</text>'
                   f'<rect x="{min(one, end):.1f}" y="{y + 1}" width="{abs(end - one):.1f}" height="{ROW - 5}" fill="{colour}"/>'
                   f'<text x="{WIDTH - RIGHT + 10}" y="{y + 10}">{r["ratio"]:.2f}</text>')
        for peer, ratio in r["ratios"].items():
            out.append(f'<circle cx="{across(ratio):.1f}" cy="{y + 6.5}" r="3.2" fill="{COLOUR[peer]}" '
                       'stroke="#fff" stroke-width="0.8"/>')
    return axes.document(WIDTH, height, [out])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as f:
        results = json.load(f)
    with open(sys.argv[2], "w") as f:
        f.write(chart(results["rows"], results["title"], results.get("what", "time")))
