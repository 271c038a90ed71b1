"""The operators of bench/operators.c in eager PyTorch: answers lines "NAME MODE" on standard input with one JSON line each.

usage: peer_operators.py [--threads 2] [--seconds 0.5]

Both memory formats of convolutions and both spellings of the capsule convolution are timed; the answer is the faster one, by name.
"""
import argparse, json, statistics, sys, time

import torch
import torch.nn.functional as F

CONV = {"C1": (224, 3, 64, 7, 2), "C2": (56, 64, 64, 3, 1), "C3": (56, 64, 64, 1, 1), "C4": (56, 64, 128, 3, 2),
        "C5": (56, 64, 128, 1, 2), "C6": (28, 128, 128, 3, 1), "C7": (28, 128, 256, 3, 2), "C8": (28, 128, 256, 1, 2),
        "C9": (14, 256, 256, 3, 1), "C10": (14, 256, 512, 3, 2), "C11": (14, 256, 512, 1, 2), "C12": (7, 512, 512, 3, 1)}
DEPTHWISE = {"D1": (112, 32, 1), "D2": (112, 64, 2), "D3": (56, 128, 1), "D4": (56, 128, 2), "D5": (28, 256, 1),
             "D6": (28, 256, 2), "D7": (14, 512, 1), "D8": (14, 512, 2), "D9": (7, 1024, 1)}
GEMM = {"gemm_1024": (1024, 1024, 1024), "gemm_512x512x64": (512, 512, 64), "gemm_16x4096x1024": (16, 4096, 1024)}


def forward(f, *operands):
    def run():
        with torch.no_grad():
            return f(*operands)
    return run


def both(f, *operands):
    leaves = [t.clone().requires_grad_() for t in operands]
    seed = torch.randn_like(f(*operands))
    return lambda: torch.autograd.grad(f(*leaves), leaves, seed)


def modes(f, *operands):
    return {"forward": {"eager": forward(f, *operands)}, "forward+grad": {"eager": both(f, *operands)}}


def convolution(side, i, o, k, s, groups=1):
    out = {"forward": {}, "dx": {}, "dw": {}}
    for name, layout in (("nchw", torch.contiguous_format), ("nhwc", torch.channels_last)):
        x = torch.randn(1, i, side, side).to(memory_format=layout)
        w = torch.randn(o, i // groups, k, k).to(memory_format=layout)
        y = F.conv2d(x, w, None, s, k // 2, 1, groups)
        g = torch.randn_like(y).to(memory_format=layout)
        out["forward"][name] = forward(lambda x, w: F.conv2d(x, w, None, s, k // 2, 1, groups), x, w)
        for mode, mask in (("dx", [True, False, False]), ("dw", [False, True, False])):
            out[mode][name] = lambda x=x, w=w, g=g, mask=mask: torch.ops.aten.convolution_backward(
                g, x, w, None, [s, s], [k // 2] * 2, [1, 1], False, [0, 0], groups, mask)
    return out


def capsules(batch):
    def user(x, w):
        return torch.einsum("bcpqitrs,kcrstj->bkpqij", x.unfold(2, 3, 2).unfold(3, 3, 2), w)

    def folded(x, w):  # as one conv2d of [(b i), (c t), h, w]
        b, c, h, _, i, t = x.shape
        x = x.permute(0, 4, 1, 5, 2, 3).reshape(b * i, c * t, h, h)
        y = F.conv2d(x, w.permute(0, 5, 1, 4, 2, 3).reshape(w.shape[0] * 4, -1, 3, 3), stride=2)
        return y.view(b, i, w.shape[0], 4, 6, 6).permute(0, 2, 4, 5, 1, 3).contiguous()

    operands = torch.randn(batch, 32, 14, 14, 4, 4), torch.randn(32, 32, 3, 3, 4, 4)
    out = {"forward": {}, "forward+grad": {}}
    for name, f in (("unfold", user), ("conv2d", folded)):
        for mode, run in modes(f, *operands).items():
            out[mode][name] = run["eager"]
    return out


def work(name):
    if name in GEMM:
        m, n, k = GEMM[name]
        return modes(torch.matmul, torch.randn(m, k), torch.randn(k, n))
    if name in CONV:
        return convolution(*CONV[name])
    if name in DEPTHWISE:
        side, c, s = DEPTHWISE[name]
        return convolution(side, c, c, 3, s, c)
    if name.startswith("capsconv_b"):
        return capsules(int(name[len("capsconv_b"):]))
    x, w, b, r = torch.randn(4096, 1024), torch.randn(1024), torch.randn(1024), torch.randn(4096, 1024)
    return {"softmax": lambda: modes(lambda x: torch.softmax(x, 1), x),
            "layernorm": lambda: modes(lambda x, w, b: F.layer_norm(x, (1024,), w, b), x, w, b),
            "chain": lambda: modes(lambda x, w, b, r: F.gelu(x * w + b) + r, x, w, b, r)}[name]()


def timed(run, limit):
    """The median of 15 batches, ms."""
    start, n = time.perf_counter(), 0
    while n == 0 or time.perf_counter() - start < limit:
        run()
        n += 1
    each, batches = n // 8 + 1, []
    for _ in range(15):
        start = time.perf_counter()
        for _ in range(each):
            run()
        batches.append((time.perf_counter() - start) / each)
    return 1e3 * statistics.median(batches)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--seconds", type=float, default=0.2)
    args = ap.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    kept = (None, None)
    for line in sys.stdin:
        name, mode = line.split()
        if kept[0] != name:
            kept = (name, work(name))
        times = {variant: timed(run, args.seconds) for variant, run in kept[1][mode].items()}
        best = min(times, key=times.get)
        print(json.dumps(dict(name=name, mode=mode, ms=times[best], variant=best)), flush=True)


if __name__ == "__main__":
    main()
