"""The network of examples/capsnet in eager PyTorch: times one training step and prints one JSON line.

usage: peer_capsnet.py [--batch 32] [--seconds 4] [--threads 2] [--variant conv2d|user] [--error DIR --epochs N]

Variant `user` is what one writes first (unfold and einsum); `conv2d` folds the capsule convolutions into the library's.
With --error it trains on the MNIST files in DIR and prints the test error after each epoch.
"""
import argparse, gzip, json, math, time

START = time.time()
import torch
import torch.nn.functional as F

import peer_training


def squash(v, dims):
    n2 = (v * v).sum(dims, keepdim=True)
    return v * (n2 / (1 + n2) * torch.rsqrt(n2 + 1e-7))


def parameters(seed):
    g = torch.Generator().manual_seed(seed)
    normal = lambda fan, *shape: (torch.randn(shape, generator=g) / math.sqrt(fan)).requires_grad_()
    zeros = lambda n: torch.zeros(n, requires_grad=True)
    return dict(stem=normal(12.5, 64, 1, 5, 5), stem_b=zeros(64), primary=normal(32, 256, 64, 1, 1), primary_b=zeros(256),
                caps1=normal(16 * 36, 32, 16, 3, 3, 4, 4), caps2=normal(32 * 36, 32, 32, 3, 3, 4, 4),
                votes=normal(4, 512, 10, 4, 4))


def capsule_user(x, k, stride):
    """x [b,c,h,w,i,t], k [k,c,r,s,t,j] -> [b,k,p,q,i,j]"""
    patches = x.unfold(2, 3, stride).unfold(3, 3, stride)
    return torch.einsum("bcpqitrs,kcrstj->bkpqij", patches, k)


def capsule_conv2d(x, k, stride):
    """The same on x as [(b i), (c t), h, w]."""
    n = k.shape[0]
    return F.conv2d(x, k.permute(0, 5, 1, 4, 2, 3).reshape(n * 4, -1, 3, 3), stride=stride)


def poses(p, x, variant):
    b = x.shape[0]
    x = F.relu(F.conv2d(x, p["stem"], p["stem_b"], stride=2, padding=2))
    x = F.conv2d(x, p["primary"], p["primary_b"]).view(b, 16, 4, 4, 14, 14)
    if variant == "user":
        x = x.permute(0, 1, 4, 5, 2, 3)
        for name, stride in (("caps1", 2), ("caps2", 1)):
            x = squash(capsule_user(x, p[name], stride), (4, 5))
        return x.reshape(b, 512, 4, 4)
    x = x.permute(0, 2, 1, 3, 4, 5).reshape(b * 4, 64, 14, 14)
    for name, stride in (("caps1", 2), ("caps2", 1)):
        x = capsule_conv2d(x, p[name], stride)
        h = x.shape[-1]
        x = squash(x.view(b, 4, 32, 4, h, h), (1, 3)).reshape(b * 4, 128, h, h)
    return x.view(b, 4, 32, 4, 16).permute(0, 2, 4, 1, 3).reshape(b, 512, 4, 4)


def network(p, x, variant):
    u = torch.einsum("bnit,nmtj->bnmij", poses(p, x, variant), p["votes"]).flatten(3)
    logits = torch.zeros(u.shape[:3])
    for it in range(3):
        c = torch.softmax(logits, 2)
        v = squash((c.unsqueeze(-1) * u).sum(1), -1)
        if it < 2:
            logits = logits + (u * v.unsqueeze(1)).sum(-1)
    return v


def margin(v, y):
    length = torch.sqrt((v * v).sum(-1) + 1e-12)
    t = F.one_hot(y, 10).float()
    loss = t * F.relu(0.9 - length) ** 2 + 0.5 * (1 - t) * F.relu(length - 0.1) ** 2
    return loss.sum(1).mean()


def idx(path):
    data = gzip.open(path).read()
    rank = data[3]
    shape = [int.from_bytes(data[4 + 4 * d:8 + 4 * d], "big") for d in range(rank)]
    return torch.frombuffer(bytearray(data[4 + 4 * rank:]), dtype=torch.uint8).view(shape)


def train(folder, args, p, opt):
    x, y = idx(f"{folder}/train-images-idx3-ubyte.gz"), idx(f"{folder}/train-labels-idx1-ubyte.gz").long()
    tx, ty = idx(f"{folder}/t10k-images-idx3-ubyte.gz"), idx(f"{folder}/t10k-labels-idx1-ubyte.gz").long()
    scale = lambda images: images[:, None].float() / 255
    for epoch in range(args.epochs):
        for part in torch.randperm(len(x)).split(args.batch):
            opt.zero_grad()
            margin(network(p, scale(x[part]), args.variant), y[part]).backward()
            opt.step()
        with torch.no_grad():
            wrong = sum((network(p, scale(a), args.variant).square().sum(-1).argmax(1) != b).sum().item()
                        for a, b in zip(tx.split(500), ty.split(500)))
        print(json.dumps({"epoch": epoch + 1, "test_error": 100 * wrong / len(ty)}), flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--seconds", type=float, default=4)
    ap.add_argument("--variant", choices=("conv2d", "user"), default="conv2d")
    ap.add_argument("--error")
    ap.add_argument("--epochs", type=int, default=1)
    ap.add_argument("--start", type=float, default=START, help="when the process was started (seconds since 1970)")
    args = ap.parse_args()
    torch.set_num_threads(args.threads)
    p = parameters(0)
    opt = torch.optim.Adam(p.values(), lr=1e-3, fused=True)
    if args.error:
        return train(args.error, args, p, opt)
    x, y = torch.rand(args.batch, 1, 28, 28), torch.randint(0, 10, (args.batch,))

    def step():
        opt.zero_grad()
        loss = margin(network(p, x, args.variant), y)
        loss.backward()
        opt.step()
        return loss.item()

    peer_training.measure(step, args.seconds, args.start)


if __name__ == "__main__":
    main()
