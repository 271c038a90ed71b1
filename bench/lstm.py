#!/usr/bin/env python3
"""Times training of the row-by-row LSTM beside PyTorch, in turns, and prints JSON lines and a table in Markdown.

usage: bench/lstm.py [--lstm PATH] [--peer-python PATH] [--rounds 3] [--threads 2] [--out FILE.json]

The time of a step is that of the third epoch, by which the digits are drawn and, in dynamic mode, kernels tuned.
Peers: nn is torch.nn.LSTM, the vendor's kernels; cell is the same network with the equations of a step in a Python loop.
"""
import re
import training


class Ours(training.Ours):
    def step_ms(self, *mode):
        _, peak, out, _ = training.timed(self.cmd + ["--epochs", "3", *mode], self.env)
        return {"step_ms": 1e3 * self.batch / float(re.findall(r"images/s (\d+)", out)[-1]), "peak_mb": peak}


if __name__ == "__main__":
    training.main(__doc__, "lstm", Ours, ("nn", "cell"), 64)
