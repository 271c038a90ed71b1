#!/usr/bin/env python3
"""examples/lstm in PyTorch, timed: one JSON line with step_ms (median), first_s and peak_mb.

usage: bench/peer_lstm.py [--batch 64] [--hidden 128] [--threads 2] [--seconds 4] [--variant nn|cell]

nn: torch.nn.LSTM, the vendor's kernels. cell: the same equations as a user writes them, a step at a time, with the
product of all rows taken before the loop.
"""
import time

START = time.time()
import argparse
import torch
import torch.nn.functional as F

import peer_training

STEPS, PIXELS, CLASSES = 28, 28, 10


class Cell(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rows, self.state = torch.nn.Linear(PIXELS, 4 * hidden), torch.nn.Linear(hidden, 4 * hidden, bias=False)

    def forward(self, x):
        a = self.rows(x)
        h = c = x.new_zeros(x.shape[1], self.state.in_features)
        for t in range(x.shape[0]):
            i, n, f, o = (a[t] + self.state(h)).chunk(4, 1)
            c = torch.sigmoid(i) * torch.tanh(n) + torch.sigmoid(f + 1) * c
            h = torch.sigmoid(o) * torch.tanh(c)
        return h


class Nn(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.lstm = torch.nn.LSTM(PIXELS, hidden)

    def forward(self, x):
        return self.lstm(x)[1][0][0]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--hidden", type=int, default=128)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--seconds", type=float, default=4)
    ap.add_argument("--variant", choices=("nn", "cell"), default="nn")
    ap.add_argument("--start", type=float, default=START, help="when the process was started (seconds since 1970)")
    args = ap.parse_args()
    torch.set_num_threads(args.threads)
    model = torch.nn.Sequential({"nn": Nn, "cell": Cell}[args.variant](args.hidden), torch.nn.Linear(args.hidden, CLASSES))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
    x, y = torch.rand(args.batch, STEPS, PIXELS), torch.randint(0, CLASSES, (args.batch,))

    def step():
        opt.zero_grad()
        loss = F.cross_entropy(model(x.transpose(0, 1).contiguous()), y)
        loss.backward()
        opt.step()
        return loss.item()

    peer_training.measure(step, args.seconds, args.start)


if __name__ == "__main__":
    main()
