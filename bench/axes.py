"""axes.py - charts as SVG: the picture (all charts), and a panel of lines with axes, units, curves and marks (warmup.py, curve.py).

A panel lies in a rectangle of the picture; an axis has a range and is linear or logarithmic. Texts are escaped here.
"""
import html, math

LEFT, RIGHT, TOP, BOTTOM = 64, 110, 52, 48  # of a panel: room for the numbers, the curves' names, the title, the unit


def document(width, height, parts):
    """The whole picture of lists of elements."""
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
                      'font-family="sans-serif" font-size="12"><style>text{fill:#333}.grid{stroke:#e4e4e4}.one{stroke:#666}</style>',
                      f'<rect width="{width}" height="{height}" fill="#fff"/>', *(line for part in parts for line in part), "</svg>", ""])


class Axis:
    """From low to high; ticks: numbers to write, chosen where they are not given; what: what they are, with the unit."""

    def __init__(self, low, high, what="", log=False, ticks=None):
        self.log, self.what = log, what
        self.low, self.high = low, high if high > low else low + 1
        self.ticks = ticks or (self.powers() if log else self.even())

    def even(self):
        """Multiples of 1, 2 or 5 times a power of ten, at most seven."""
        step = 10.0 ** math.floor(math.log10(self.high - self.low)) / 10
        step *= next(m for m in (1, 2, 5, 10, 20, 50, 100) if (self.high - self.low) / (m * step) <= 6)
        first = math.ceil(self.low / step - 1e-9)
        return [k * step for k in range(first, math.floor(self.high / step + 1e-9) + 1)]

    def powers(self):
        """1, 2, 5, 10, 20, ..; only powers of ten where these are many."""
        every = [m * 10.0 ** e for e in range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1) for m in (1, 2, 5)]
        inside = [v for v in every if 0.999 * self.low <= v <= 1.001 * self.high]
        return inside if len(inside) <= 9 else [v for v in inside if math.log10(v) % 1 < 1e-9]

    def share(self, v):
        v = min(max(v, self.low), self.high)
        return math.log(v / self.low) / math.log(self.high / self.low) if self.log else (v - self.low) / (self.high - self.low)


class Panel:
    def __init__(self, width, height, title, across, up, top=0):
        self.across, self.up = across, up
        self.x0, self.x1, self.y0, self.y1 = LEFT, width - RIGHT, top + TOP, top + height - BOTTOM
        self.out, self.names = [], []
        self.text(8, top + 20, title, 'font-size="14" font-weight="bold"')
        for v in across.ticks:
            self.line(self.x(v), self.x(v), self.y0, self.y1, 'class="grid"')
            self.text(self.x(v), self.y1 + 18, f"{v:.4g}", 'text-anchor="middle"')
        for v in up.ticks:
            self.line(self.x0, self.x1, self.y(v), self.y(v), 'class="grid"')
            self.text(self.x0 - 8, self.y(v) + 4, f"{v:.4g}", 'text-anchor="end"')
        self.text((self.x0 + self.x1) / 2, self.y1 + 36, across.what, 'text-anchor="middle"')
        self.text(8, self.y0 - 8, up.what)

    def x(self, v):
        return self.x0 + self.across.share(v) * (self.x1 - self.x0)

    def y(self, v):
        return self.y1 - self.up.share(v) * (self.y1 - self.y0)

    def line(self, x0, x1, y0, y1, how):
        self.out.append(f'<line {how} x1="{x0:.1f}" x2="{x1:.1f}" y1="{y0:.1f}" y2="{y1:.1f}"/>')

    def text(self, x, y, text, how=""):
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" {how}>{html.escape(text)}</text>')

    def curve(self, name, colour, points, width=2):
        """A line through the points; its name at its end, but not over another's."""
        if not points:
            return
        self.out.append(f'<polyline points="{" ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in points)}" fill="none" '
                        f'stroke="{colour}" stroke-width="{width}"/>')
        if name:
            self.names.append((self.y(points[-1][1]), name, colour))

    def elements(self):
        last = -math.inf
        for y, name, colour in sorted(self.names):
            last = max(y, last + 13)
            self.text(self.x1 + 8, last + 4, name, f'style="fill:{colour}"')
        self.names = []
        return self.out
