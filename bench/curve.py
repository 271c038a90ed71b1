"""A chart of curves as SVG: the seconds of each stage over the number of layers, both logarithmic.

usage: curve.py RESULTS.json CHART.svg        RESULTS: what bench/scale --out writes
Grey: what is linear in the layers.
"""
import json, math, sys

from axes import Axis, Panel, document

WIDTH, HEIGHT = 640, 420
COLOUR = ["#2b8c6b", "#d9822b", "#8a4fbf", "#333333"]


def chart(stages, rows):
    curves = {s: [r["seconds"][k] for r in rows] for k, s in enumerate(stages)}
    curves["together"] = [sum(r["seconds"]) for r in rows]
    layers, every = [r["layers"] for r in rows], [s for c in curves.values() for s in c if s > 0]
    low, high = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))
    panel = Panel(WIDTH, HEIGHT, "Seconds before the first step, by layers of the net",
                  Axis(layers[0], layers[-1], "layers", log=True, ticks=layers),
                  Axis(10.0 ** low, 10.0 ** high, "seconds", log=True, ticks=[10.0 ** e for e in range(low, high + 1)]))
    panel.curve("", "#bbbbbb", [(n, curves["together"][-1] * n / layers[-1]) for n in layers])
    for (name, seconds), colour in zip(curves.items(), COLOUR):
        panel.curve(name, colour, [(n, s) for n, s in zip(layers, seconds) if s > 0])
    return document(WIDTH, HEIGHT, [panel.elements()])


def main():
    with open(sys.argv[1]) as f:
        data = json.load(f)
    with open(sys.argv[2], "w") as f:
        f.write(chart(data["stages"], data["rows"]))


if __name__ == "__main__":
    main()
