#!/usr/bin/env python3
"""make_lstm.py - writes lstm.txt: the loss of an LSTM over 5 of 7 steps, its gradients, and the gradients of the
sum of their squares, by PyTorch in float64, one number a line. Element i of tensor k is ((7919 i + 31 k) mod 101) / 101 - 1/2.

usage: make_lstm.py > tests/autodiff/lstm.txt"""
import math
import torch

torch.set_default_dtype(torch.float64)
steps, batch, inputs, hidden = 7, 3, 4, 5
shapes = [(steps, batch, inputs), (4 * hidden, inputs), (batch, hidden), (4 * hidden, hidden), (4 * hidden,), (batch, hidden)]
tensors = [torch.tensor([((i * 7919 + k * 31) % 101) / 101 - 0.5 for i in range(math.prod(s))]).reshape(s).requires_grad_(True)
           for k, s in enumerate(shapes)]
x, w, h, u, b, c = tensors
outputs = []
for t in range(5):
    i, f, g, o = (x[t] @ w.T + h @ u.T + b).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    outputs.append(h)
loss = (torch.stack(outputs) ** 3).sum() + (c * h).sum()
first = torch.autograd.grad(loss, tensors, create_graph=True)
second = torch.autograd.grad(sum((g * g).sum() for g in first), tensors)
for v in torch.cat([t.reshape(-1) for t in (loss, *first, *second)]):
    print(f"{v.item():.17g}")
