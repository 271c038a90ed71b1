#!/usr/bin/env python3
"""Times training of the capsule network beside PyTorch, in turns, and prints JSON lines and a table in Markdown.

usage: bench/capsnet.py [--capsnet PATH] [--peer-python PATH] [--rounds 3] [--threads 2] [--out FILE.json]

The time of a step is the slope between a short and a long run on the same kernels, so that start and drawing of data
don't count.
"""
import training


class Ours(training.Ours):
    def step_ms(self, *mode):
        short, long = self.steps(20, *mode)[0], self.steps(120, *mode)
        return {"step_ms": 1e3 * (long[0] - short) / 100, "peak_mb": long[1]}


if __name__ == "__main__":
    training.main(__doc__, "capsnet", Ours, ("conv2d", "user"), 32)
