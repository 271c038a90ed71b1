"""Writes vectors.txt: what PyTorch gives for optimisers, schedules and losses.

usage: python3 tests/nn/vectors.py >tests/nn/vectors.txt

A line is a name, a count and so many numbers. Inputs are not stored: both sides compute them by
values(). Everything is f64 but the schedules' results, which the tests compare as f32.
LAMB is no part of PyTorch; it is written here from the paper (You et al. 2020, algorithm 2)."""
import numpy as np
import torch
import torch.nn.functional as F
from torch.optim import lr_scheduler as S
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.set_default_dtype(torch.float64)


def values(seed, *shape):
    i = np.arange(int(np.prod(shape)), dtype=np.float64)
    return torch.tensor(1.5 * np.sin(seed + 0.73 * i + 0.11 * i * i)).reshape(shape)


def put(name, x):
    x = torch.as_tensor(x).detach().double().flatten()
    print(name, len(x), *("%.17g" % v for v in x))


# ---- optimisers


class Net(torch.nn.Module):
    """tanh(x w + b); `unused` is in no loss."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(values(1, 3, 4))
        self.b = torch.nn.Parameter(values(2, 4))
        self.unused = torch.nn.Parameter(values(3, 2))

    def forward(self, x):
        return torch.tanh(x @ self.w + self.b)


class Lamb(torch.optim.Optimizer):
    def __init__(self, params, lr, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay))

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                t = s["t"] = s.get("t", 0) + 1
                s["m"] = 0.9 * s.get("m", 0) + 0.1 * p.grad
                s["v"] = 0.999 * s.get("v", 0) + 0.001 * p.grad**2
                m, v = s["m"] / (1 - 0.9**t), s["v"] / (1 - 0.999**t)
                u = m / (v.sqrt() + 1e-6) + group["weight_decay"] * p.data
                a, b = p.data.norm(), u.norm()
                ratio = a / b if a > 0 and b > 0 else 1.0
                p.data -= group["lr"] * ratio * u


def train(name, make, batches=1, norm=0, value=0, average=0, steps=7):
    net = Net()
    optimiser = make(net)
    ema = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(average)) if average else None
    for k in range(steps):
        x, t = values(10 + k, 5, 3), values(20 + k, 5, 4)
        (((net(x) - t) ** 2).sum() / batches).backward()
        if (k + 1) % batches:
            continue
        if value:
            torch.nn.utils.clip_grad_value_(net.parameters(), value)
        if norm:
            torch.nn.utils.clip_grad_norm_(net.parameters(), norm)
        optimiser.step()
        optimiser.zero_grad()
        if ema:
            ema.update_parameters(net)
    for which in ("w", "b", "unused"):
        put(f"{name}.{which}", getattr(net, which))
    if ema:
        put(f"{name}.ema.w", ema.module.w)
        x, t = values(10 + steps - 1, 5, 3), values(20 + steps - 1, 5, 4)
        put(f"{name}.ema.loss", ((ema.module(x) - t) ** 2).sum())


def all_of(rule, **options):
    return lambda net: rule(net.parameters(), lr=0.03125, **options)


def grouped(net):
    """No decay and half the rate for b."""
    return torch.optim.AdamW([dict(params=[net.w], weight_decay=0.25),
                              dict(params=[net.b], weight_decay=0.0, lr=0.03125 / 2)], lr=0.03125)


def frozen(net):
    net.b.requires_grad_(False)
    return torch.optim.SGD([net.w], lr=0.03125)


O = torch.optim
train("sgd", all_of(O.SGD))
train("sgd_decay", all_of(O.SGD, weight_decay=0.25))
train("momentum", all_of(O.SGD, momentum=0.9, weight_decay=0.25))
train("nesterov", all_of(O.SGD, momentum=0.75, nesterov=True))
train("adam", all_of(O.Adam))
train("adam_options", all_of(O.Adam, betas=(0.5, 0.75), eps=0.125, weight_decay=0.25))
train("adam_beta1", all_of(O.Adam, betas=(0.0, 0.999)))
train("adamw", all_of(O.AdamW))
train("lamb", all_of(Lamb))
train("lamb_decay", all_of(Lamb, weight_decay=0.25))
train("rmsprop", all_of(O.RMSprop))
train("rmsprop_momentum", all_of(O.RMSprop, momentum=0.5))
train("adagrad", all_of(O.Adagrad))
train("clip_norm", all_of(O.SGD), norm=0.25)
train("clip_value", all_of(O.SGD), value=0.5)
train("clip_both", all_of(O.SGD), value=0.5, norm=0.25)
train("accumulate", all_of(O.AdamW), batches=3)
train("average", all_of(O.Adam), average=0.75)
train("everything", all_of(O.AdamW, weight_decay=0.25), batches=2, norm=2.0, average=0.5)
train("groups", grouped)
train("frozen", frozen)


# ---- schedules


def rates(name, make, steps=40):
    optimiser = O.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
    schedule = make(optimiser)
    got = []
    for _ in range(steps):
        got.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    put("schedule." + name, got)


def after_warmup(make, warmup=5):
    return lambda o: S.SequentialLR(o, [S.LinearLR(o, 1 / warmup, 1.0, warmup - 1), make(o)], [warmup])


def held(o, length):
    """Cosine to 0.01 and no further."""
    return S.LambdaLR(o, lambda t: (0.01 + 0.29 * (1 + np.cos(np.pi * min(t / length, 1))) / 2) / 0.3)


rates("constant", lambda o: S.ConstantLR(o, factor=1.0))
rates("steps", lambda o: S.StepLR(o, 7, 0.5))
rates("milestones", lambda o: S.MultiStepLR(o, [3, 10, 30], 0.1))
rates("cosine", lambda o: S.CosineAnnealingLR(o, 39, 0.01))
rates("cosine_held", lambda o: held(o, 25))
rates("linear", lambda o: S.LinearLR(o, 1.0, 1 / 3, 30))
rates("one_cycle", lambda o: S.OneCycleLR(o, 0.3, 40))
rates("one_cycle_warmup", lambda o: S.OneCycleLR(o, 0.3, 40, pct_start=0.25))
rates("warmup_constant", after_warmup(lambda o: S.ConstantLR(o, factor=1.0)))
rates("warmup_cosine", after_warmup(lambda o: S.CosineAnnealingLR(o, 35, 0.01)))
rates("warmup_milestones", after_warmup(lambda o: S.MultiStepLR(o, [3, 20], 0.1)))


# ---- losses: the value, then the gradient of the first operand


def loss(name, x, f):
    x = x.clone().requires_grad_()
    y = f(x)
    y.backward()
    put(f"{name}.value", y)
    put(f"{name}.gradient", x.grad)


def classes(x):
    return x.movedim(-1, 1)


x, label = values(5, 2, 3, 5), torch.tensor([[0, 4, 2], [1, 1, 3]])
weight = torch.tensor([0.5, 1.0, 2.0, 0.25, 1.5])
negative = torch.tensor([[0, -100, 2], [1, -100, 3]])
loss("cross_entropy", x, lambda x: F.cross_entropy(classes(x), label))
loss("cross_entropy_large", 400 * x, lambda x: F.cross_entropy(classes(x), label))
loss("smoothing", x, lambda x: F.cross_entropy(classes(x), label, label_smoothing=0.1))
loss("ignored", x, lambda x: F.cross_entropy(classes(x), negative, ignore_index=-100))
loss("ignored_class", x, lambda x: F.cross_entropy(classes(x), label, ignore_index=1))
loss("weights", x, lambda x: F.cross_entropy(classes(x), label, weight))
loss("all_options", x, lambda x: F.cross_entropy(classes(x), negative, weight, ignore_index=-100, label_smoothing=0.2))
loss("hinge", x, lambda x: F.multi_margin_loss(x.reshape(6, 5), label.reshape(6), margin=0.75))
a, b = values(6, 3, 4), values(7, 3, 4)
loss("squared", a, lambda a: F.mse_loss(a, b))
loss("absolute", a, lambda a: F.l1_loss(a, b))
loss("huber", a, lambda a: F.huber_loss(a, b, delta=0.75))
loss("smooth_l1", a, lambda a: F.smooth_l1_loss(a, b, beta=0.375))
z, target = values(8, 3, 4) * 40, torch.sigmoid(values(9, 3, 4))
z[0, 0] = 0
loss("binary", z, lambda z: F.binary_cross_entropy_with_logits(z, target))
p = torch.softmax(values(9, 2, 3, 4), -1)
p[0, 0, 0] = 0
loss("kl", a.reshape(3, 4), lambda a: F.kl_div(a.expand(2, 3, 4).reshape(6, 4), p.reshape(6, 4), reduction="batchmean"))
x, label = values(11, 8, 4, 5), torch.tensor([[1, 1, 2], [3, 4, 1], [2, 1, 1], [4, 4, 4]])
steps, lengths = torch.tensor([8, 6, 7, 5]), torch.tensor([3, 2, 1, 3])
loss("ctc", x, lambda x: F.ctc_loss(x.log_softmax(-1), label, steps, lengths))
full = torch.full((4,), 8), torch.full((4,), 3)
loss("ctc_full", 20 * x, lambda x: F.ctc_loss(x.log_softmax(-1), label, *full))
loss("ctc_blank", x, lambda x: F.ctc_loss(x.log_softmax(-1), label - 1, steps, lengths, blank=4))
