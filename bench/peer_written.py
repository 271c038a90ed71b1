#!/usr/bin/env python3
"""The nets of bench/written.c for PyTorch, as its users write them: times one of them and prints one JSON line.

usage: peer_written.py --peer torch|compile --net NAME [--threads 2] [--seconds 2] [--start T]
       peer_written.py --list                        {net: {peer: [variant, ..]}}

The figures are those of bench/peer_nets.py; a step is one of Adam.
"""
import time

START = time.time()
import argparse, json, math, resource

import torch, torch.nn as nn, torch.nn.functional as F

from peer_nets import median_ms


def plain(a, b):
    return nn.Linear(a, b, bias=False)


def parameters(n, *shape, scale=.1):
    return nn.ParameterList([scale * torch.randn(*shape) for _ in range(n)])


class Gat(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.ModuleList([plain(64, 64) for _ in range(3)])
        self.a, self.b, self.head = parameters(3, 4, 16), parameters(3, 4, 16), nn.Linear(64, 16)

    def forward(self, x, source, to, y):
        for i in range(3):
            w = self.w[i](x).view(-1, 4, 16)
            e = F.leaky_relu((w * self.a[i]).sum(-1)[source] + (w * self.b[i]).sum(-1)[to], .2)
            most = torch.full((4096, 4), -math.inf).scatter_reduce(0, to[:, None].expand(-1, 4), e.detach(), "amax")
            e = (e - most[to]).exp()
            z = torch.zeros(4096, 4).index_add(0, to, e)
            x = torch.zeros(4096, 4, 16).index_add(0, to, (e / z[to])[..., None] * w[source]).flatten(1)
            x = F.elu(x) if i < 2 else x
        return F.cross_entropy(self.head(x), y)

    def data(self):
        return torch.randn(4096, 64), torch.randint(4096, (32768,)), torch.randint(4096, (32768,)), torch.randint(16, (4096,))


class Points(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, b), nn.ReLU())
                                     for a, b in ((6, 32), (64, 64), (128, 128))])
        self.head = nn.Linear(128, 10)

    def forward(self, h, near, y):
        batch = torch.arange(4)[:, None, None]
        for layer in self.layers:
            own = h[:, :, None]
            h = layer(torch.cat((h[batch, near] - own, own.expand(-1, -1, 16, -1)), -1)).amax(2)
        return F.cross_entropy(self.head(h.amax(1)), y)

    def data(self):
        return torch.randn(4, 1024, 3), torch.randint(1024, (4, 1024, 16)), torch.randint(10, (4,))


class Mamba(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(256, 128)
        self.blocks = nn.ModuleList([nn.ModuleDict(dict(
            norm=nn.RMSNorm(128), into=plain(128, 256), z=plain(128, 256), conv=nn.Conv1d(256, 256, 4, groups=256, bias=False),
            rank=plain(256, 8), dt=nn.Linear(8, 256), b=plain(256, 16), c=plain(256, 16), out=plain(256, 128))) for _ in range(2)])
        self.a, self.d = nn.ParameterList([torch.rand(256, 16) for _ in range(2)]), nn.ParameterList([torch.ones(256) for _ in range(2)])
        self.norm, self.head = nn.RMSNorm(128), plain(128, 256)

    def forward(self, x, y):
        h = self.embedding(x)
        for m, a, d in zip(self.blocks, self.a, self.d):
            n = m["norm"](h)
            u, z = m["into"](n), m["z"](n)
            u = F.silu(m["conv"](F.pad(u.transpose(1, 2), (3, 0))).transpose(1, 2))
            dt, b, c = F.softplus(m["dt"](m["rank"](u))), m["b"](u), m["c"](u)
            decay, new = torch.exp(-dt[..., None] * a.exp()), dt[..., None] * b[:, :, None] * u[..., None]
            state, out = torch.zeros(4, 256, 16), []
            for t in range(256):
                state = decay[:, t] * state + new[:, t]
                out.append((state * c[:, t, None]).sum(-1))
            h = h + m["out"]((torch.stack(out, 1) + d * u) * F.silu(z))
        return F.cross_entropy(self.head(self.norm(h)).flatten(0, 1), y.flatten())

    def data(self):
        return torch.randint(256, (4, 256)), torch.randint(256, (4, 256))


class Hyena(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(256, 128), plain(128, 256)
        self.blocks = nn.ModuleList([nn.ModuleDict(dict(norm=nn.LayerNorm(128), **{k: plain(128, 128) for k in "qkvo"})) for _ in range(2)])
        self.f, self.a = parameters(2, 512, 128, scale=.02), nn.ParameterList([.02 * torch.rand(128) for _ in range(2)])

    def forward(self, x, y):
        h, t = self.embedding(x), torch.arange(512.)[:, None]
        for m, f, a in zip(self.blocks, self.f, self.a):
            n = m["norm"](h)
            g = torch.fft.rfft(f * torch.exp(-a.abs() * t), 1024, 0)  # long convolutions by transforms
            c = torch.fft.irfft(torch.fft.rfft(m["v"](n) * m["k"](n), 1024, 1) * g, 1024, 1)[:, :512]
            h = h + m["o"](c * m["q"](n))
        return F.cross_entropy(self.head(h).flatten(0, 1), y.flatten())

    def data(self):
        return torch.randint(256, (4, 512)), torch.randint(256, (4, 512))


class Retnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(512, 256), plain(256, 512)
        self.blocks = nn.ModuleList([nn.ModuleDict(dict(
            norm1=nn.LayerNorm(256), norm2=nn.LayerNorm(256), up=nn.Linear(256, 512), down=nn.Linear(512, 256),
            **{k: plain(256, 256) for k in "qkvgo"})) for _ in range(4)])
        i = torch.arange(256)[:, None] - torch.arange(256)
        rate = torch.log1p(-torch.exp(-3.4657 - .4 * torch.arange(8)))[:, None, None]
        self.register_buffer("decay", torch.where(i >= 0, torch.exp(i.clamp(min=0) * rate), 0.) * 32**-.5)

    def forward(self, x, y):
        h = self.embedding(x)
        for m in self.blocks:
            n = m["norm1"](h)
            q, k, v = (m[i](n).view(8, 256, 8, 32).transpose(1, 2) for i in "qkv")
            a = (q @ k.transpose(-1, -2) * self.decay) @ v
            a = a * torch.rsqrt(a.square().mean(-1, keepdim=True) + 1e-6)
            h = h + m["o"](F.silu(m["g"](n)) * a.transpose(1, 2).reshape(8, 256, 256))
            h = h + m["down"](F.gelu(m["up"](m["norm2"](h))))
        return F.cross_entropy(self.head(h).flatten(0, 1), y.flatten())

    def data(self):
        return torch.randint(512, (8, 256)), torch.randint(512, (8, 256))


class Swin(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.head, self.relative = nn.Conv2d(3, 96, 2, 2), nn.Linear(96, 10), parameters(4, 225, 4, scale=.02)
        self.blocks = nn.ModuleList([nn.ModuleDict(dict(
            norm1=nn.LayerNorm(96), norm2=nn.LayerNorm(96), qkv=nn.Linear(96, 288), out=nn.Linear(96, 96), up=nn.Linear(96, 384),
            down=nn.Linear(384, 96))) for _ in range(4)])
        i = torch.arange(64)
        self.register_buffer("place", (i[:, None] // 8 - i // 8 + 7) * 15 + i[:, None] % 8 - i % 8 + 7)
        part = torch.arange(32) < 28
        part = (part[:, None] * 2 + part).view(4, 8, 4, 8).permute(0, 2, 1, 3).reshape(16, 64)
        self.register_buffer("mask", torch.where(part[:, :, None] == part[:, None], 0., -math.inf)[:, None])

    def forward(self, x, y):
        h = self.patch(x).permute(0, 2, 3, 1)
        for i, m in enumerate(self.blocks):
            n = m["norm1"](h)
            n = torch.roll(n, (-4, -4), (1, 2)) if i % 2 else n
            n = n.view(8, 4, 8, 4, 8, 96).transpose(2, 3).reshape(128, 64, 96)
            q, k, v = m["qkv"](n).view(128, 64, 3, 4, 24).permute(2, 0, 3, 1, 4)
            bias = self.relative[i][self.place].permute(2, 0, 1)[None]
            bias = (bias + self.mask)[None].expand(8, -1, -1, -1, -1).reshape(128, 4, 64, 64) if i % 2 else bias.expand(128, -1, -1, -1)
            a = F.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2).reshape(128, 64, 96)
            a = m["out"](a).view(8, 4, 4, 8, 8, 96).transpose(2, 3).reshape(8, 32, 32, 96)
            h = h + (torch.roll(a, (4, 4), (1, 2)) if i % 2 else a)
            h = h + m["down"](F.gelu(m["up"](m["norm2"](h))))
        return F.cross_entropy(self.head(h.mean((1, 2))), y)

    def data(self):
        return torch.randn(8, 3, 64, 64), torch.randint(10, (8,))


class Residual(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.body = nn.Sequential(nn.GroupNorm(8, i), nn.SiLU(), nn.Conv2d(i, o, 3, 1, 1), nn.GroupNorm(8, o), nn.SiLU(), nn.Conv2d(o, o, 3, 1, 1))
        self.short = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x):
        return self.body(x) + self.short(x)


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.down0 = nn.Conv2d(3, 32, 3, 1, 1), Residual(32, 32)
        self.half1, self.down1 = nn.Conv2d(32, 64, 3, 2, 1), Residual(64, 64)
        self.half2, self.down2, self.middle = nn.Conv2d(64, 128, 3, 2, 1), Residual(128, 128), Residual(128, 128)
        self.up1, self.up0, self.out = Residual(192, 64), Residual(96, 32), nn.Conv2d(32, 3, 3, 1, 1)

    def forward(self, x, y):
        a = self.down0(self.into(x))
        b = self.down1(self.half1(a))
        c = self.middle(self.down2(self.half2(b)))
        b = self.up1(torch.cat((F.interpolate(c, scale_factor=2, mode="bilinear"), b), 1))
        a = self.up0(torch.cat((F.interpolate(b, scale_factor=2, mode="bilinear"), a), 1))
        return F.mse_loss(self.out(a), y)

    def data(self):
        return torch.randn(4, 3, 64, 64), torch.randn(4, 3, 64, 64)


class Diffusion(nn.Module):
    def __init__(self):
        super().__init__()
        conv = lambda a, b, s: nn.Conv2d(a, b, 3, s, 1)
        self.inner, self.half1, self.half2, self.out = conv(3, 32, 1), conv(32, 64, 2), conv(64, 128, 2), conv(32, 3, 1)
        self.down0, self.down1, self.middle = Residual(32, 32), Residual(64, 64), Residual(128, 128)
        self.twice1, self.twice0, self.up1, self.up0 = conv(128, 128, 1), conv(64, 64, 1), Residual(192, 64), Residual(96, 32)

    def forward(self, x, y):
        a = self.down0(self.inner(x))
        b = self.down1(self.half1(a))
        c = self.twice1(F.interpolate(self.middle(self.half2(b)), scale_factor=2))
        b = self.twice0(F.interpolate(self.up1(torch.cat([c, b], 1)), scale_factor=2))
        return F.mse_loss(self.out(self.up0(torch.cat([b, a], 1))), y)

    def data(self):
        return torch.randn(4, 3, 64, 64), torch.randn(4, 3, 64, 64)


class Wavenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.out = nn.Conv1d(1, 32, 1), nn.Sequential(nn.ReLU(), nn.Conv1d(64, 64, 1), nn.ReLU(), nn.Conv1d(64, 256, 1))
        self.w = nn.ModuleList([nn.Conv1d(32, 64, 2, dilation=1 << i, bias=False) for i in range(8)])
        self.skip, self.next = (nn.ModuleList([nn.Conv1d(32, o, 1) for _ in range(8)]) for o in (64, 32))

    def forward(self, x, y):
        h, skip = self.into(x), 0
        for i in range(8):
            a, b = self.w[i](F.pad(h, (1 << i, 0))).chunk(2, 1)
            z = torch.tanh(a) * torch.sigmoid(b)
            skip, h = skip + self.skip[i](z), h + self.next[i](z)
        return F.cross_entropy(self.out(skip), y)

    def data(self):
        return torch.randn(8, 1, 2048), torch.randint(256, (8, 2048))


class Vqvae(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.ReLU(), nn.Conv2d(64, 128, 4, 2, 1), nn.ReLU(), nn.Conv2d(128, 64, 3, 1, 1))
        self.up = nn.Sequential(nn.Conv2d(64, 128, 3, 1, 1), nn.ReLU(), nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.ReLU(),
                                nn.ConvTranspose2d(64, 3, 4, 2, 1))
        self.book = nn.Parameter(.1 * torch.randn(256, 64))

    def forward(self, x):
        h = self.down(x)
        f = h.permute(0, 2, 3, 1).reshape(-1, 64)
        at = (f.square().sum(1, keepdim=True) - 2 * f @ self.book.t() + self.book.square().sum(1)).argmin(1)
        z = self.book[at].view(16, 8, 8, 64).permute(0, 3, 1, 2)
        return F.mse_loss(self.up(h + (z - h).detach()), x) + F.mse_loss(z, h.detach()) + .25 * F.mse_loss(h, z.detach())

    def data(self):
        return torch.randn(16, 3, 32, 32),


class Automaton(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.v = nn.Conv2d(48, 128, 1), nn.Conv2d(128, 16, 1, bias=False)
        d, own = torch.tensor([[-1., 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8, torch.zeros(3, 3)
        own[1, 1] = 1
        self.register_buffer("kernel", torch.stack((own, d, d.t()))[:, None].repeat(16, 1, 1, 1))

    def forward(self, x, y):
        for _ in range(16):
            u = self.v(F.relu(self.w(F.conv2d(x, self.kernel, None, 1, 1, 1, 16))))
            x = x + u * (torch.rand(4, 1, 32, 32) < .5)
        return F.mse_loss(x[:, :4], y)

    def data(self):
        return torch.randn(4, 16, 32, 32), torch.randn(4, 4, 32, 32)


class Kan(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.ParameterList([.1 * torch.randn(o, i, 8) for i, o in ((64, 128), (128, 128), (128, 10))])

    def forward(self, h, y):
        k = torch.arange(8.)
        for c in self.c:
            h = F.relu(1 - (torch.tanh(h)[..., None] * 3.5 + 3.5 - k).abs()).flatten(1) @ c.flatten(1).t()
        return F.cross_entropy(h, y)

    def data(self):
        return torch.randn(128, 64), torch.randint(10, (128,))


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.route = plain(128, 8)
        self.w, self.v = nn.Parameter(.05 * torch.randn(8, 256, 128)), nn.Parameter(.05 * torch.randn(8, 128, 256))

    def forward(self, x, y):
        r = self.route(x)
        g = torch.softmax(torch.where(r >= r.topk(2, -1).values[:, 1:], r, -math.inf), -1)
        a = F.relu(torch.einsum("tc,emc->tem", x, self.w)) * g[..., None]
        return F.mse_loss(torch.einsum("tem,eom->to", a, self.v), y)

    def data(self):
        return torch.randn(512, 128), torch.randn(512, 128)


class Fno(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift, self.project, self.out = nn.Conv1d(2, 32, 1), nn.Conv1d(32, 128, 1), nn.Conv1d(128, 1, 1)
        self.w, self.skip = parameters(4, 32, 32, 16, 2, scale=.05), nn.ModuleList([nn.Conv1d(32, 32, 1) for _ in range(4)])

    def forward(self, x, y):
        h = self.lift(x)
        for i in range(4):
            f = torch.einsum("bck,cok->bok", torch.fft.rfft(h)[..., :16], torch.view_as_complex(self.w[i]))
            h = torch.fft.irfft(F.pad(f, (0, 113)), n=256) + self.skip[i](h)
            h = F.gelu(h) if i < 3 else h
        return F.mse_loss(self.out(F.gelu(self.project(h))), y)

    def data(self):
        return torch.randn(16, 2, 256), torch.randn(16, 1, 256)


def pooled(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 5), nn.MaxPool2d(2), nn.ReLU())


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.where = nn.Sequential(pooled(1, 8), pooled(8, 10), nn.Flatten(), nn.Linear(160, 32), nn.ReLU(), nn.Linear(32, 6))
        self.net = nn.Sequential(pooled(1, 10), pooled(10, 20), nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10))

    def forward(self, x, y):
        t = torch.tensor([[1., 0, 0], [0, 1, 0]]) + .1 * self.where(x).view(-1, 2, 3)
        return F.cross_entropy(self.net(F.grid_sample(x, F.affine_grid(t, x.shape, align_corners=False), align_corners=False)), y)

    def data(self):
        return torch.randn(64, 1, 28, 28), torch.randint(10, (64,))


class Quaternion(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.head = nn.ParameterList([.06 * torch.randn(16, 16 if i else 4, 4, 3, 3) for i in range(3)]), nn.Linear(64, 10)

    def forward(self, x, y):
        h = x.transpose(1, 2).flatten(1, 2)
        for w in self.w:
            a, b, c, d = w.unbind(2)
            rows = ((a, -b, -c, -d), (b, a, -d, c), (c, d, a, -b), (d, -c, b, a))
            h = F.relu(F.conv2d(h, torch.cat([torch.cat(r, 1) for r in rows]), padding=1))
        return F.cross_entropy(self.head(h.mean((2, 3))), y)

    def data(self):
        return torch.randn(16, 4, 4, 16, 16), torch.randint(10, (16,))


class Pixelcnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.out = nn.Embedding(16, 32), nn.Conv2d(32, 16, 1)
        self.w, self.residual = parameters(4, 64, 32, 5, 5, scale=.05), nn.ModuleList([nn.Conv2d(32, 32, 1) for _ in range(3)])
        before = torch.arange(25).view(5, 5)
        self.register_buffer("mask", torch.stack([before < 12, before < 13]).float())

    def forward(self, x):
        h = self.embedding(x).permute(0, 3, 1, 2)
        for i, w in enumerate(self.w):
            a, b = F.conv2d(h, w * self.mask[int(i > 0)], padding=2).chunk(2, 1)
            z = torch.tanh(a) * torch.sigmoid(b)
            h = h + self.residual[i - 1](z) if i else z
        return F.cross_entropy(self.out(F.relu(h)), x)

    def data(self):
        return torch.randint(16, (8, 16, 16)),


class Bayes(nn.Module):
    def __init__(self):
        super().__init__()
        shapes = ((256, 784), (256, 256), (10, 256))
        self.mean = nn.ParameterList([.05 * torch.randn(*s) for s in shapes])
        self.deviation = nn.ParameterList([torch.full(s, -4.) for s in shapes])

    def forward(self, x, y):
        k = 0
        for i, (m, s) in enumerate(zip(self.mean, self.deviation)):
            d = F.softplus(s)
            x = F.linear(x, m + d * torch.randn_like(d))
            x = F.relu(x) if i < 2 else x
            k = k + (.5 * (d * d + m * m - 1) - d.log()).sum()
        return F.cross_entropy(x, y) + 1e-6 * k

    def data(self):
        return torch.randn(128, 784), torch.randint(10, (128,))


class Volume(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv3d(3, 32, 3, 1, 1), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(32, 64, 3, 1, 1), nn.ReLU(),
                                 nn.MaxPool3d(2), nn.Conv3d(64, 128, 3, 1, 1), nn.ReLU())
        self.head = nn.Linear(128, 10)

    def forward(self, x, y):
        return F.cross_entropy(self.head(self.net(x).mean((2, 3, 4))), y)

    def data(self):
        return torch.randn(4, 3, 8, 32, 32), torch.randint(10, (4,))


class Ctc(nn.Module):
    def __init__(self):
        super().__init__()
        self.full, self.head = nn.Linear(64, 128), nn.Linear(128, 32)

    def forward(self, x, y):
        p = F.log_softmax(self.head(F.relu(self.full(x))), -1).transpose(0, 1)
        return F.ctc_loss(p, y, torch.full((16,), 64), torch.full((16,), 16), blank=31, reduction="sum") / 16

    def data(self):
        return torch.randn(16, 64, 64), torch.randint(31, (16, 16))


class Vocoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.out = nn.Conv1d(40, 128, 7, 1, 3), nn.Conv1d(32, 1, 7, 1, 3)
        self.up = nn.ModuleList([nn.ConvTranspose1d(128 >> i, 64 >> i, 16, 8, 4) for i in range(2)])
        self.blocks = nn.ModuleList([nn.ModuleList([nn.ModuleList(
            [nn.Conv1d(64 >> i, 64 >> i, k, 1, d * (k // 2), d, bias=False) for d in (1, 3, 5)]) for k in (3, 7)]) for i in range(2)])

    def forward(self, x, y):
        h = self.into(x)
        for up, blocks in zip(self.up, self.blocks):
            h, total = up(F.leaky_relu(h, .1)), 0
            for block in blocks:
                z = h
                for c in block:
                    z = z + c(F.leaky_relu(z, .1))
                total = total + z
            h = total
        return F.l1_loss(torch.tanh(self.out(h)), y)

    def data(self):
        return torch.randn(4, 40, 32), torch.randn(4, 1, 2048)


class Butterfly(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.head = parameters(20, 1024, 2, scale=.7), nn.Linear(1024, 10)

    def forward(self, x, y):
        for i, w in enumerate(self.w):
            x = w[:, 0] * x + w[:, 1] * x.view(128, -1, 2, 1 << i % 10).flip(2).reshape(128, 1024)
            x = F.relu(x) if i % 10 == 9 else x
        return F.cross_entropy(self.head(x), y)

    def data(self):
        return torch.randn(128, 1024), torch.randint(10, (128,))


class Molecules(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.ModuleDict(dict(
            target=nn.Linear(64, 64), source=plain(64, 64), far=plain(1, 64), message=nn.Linear(64, 64), pull1=nn.Linear(64, 64),
            pull2=plain(64, 1), node1=nn.Linear(128, 64), node2=nn.Linear(64, 64))) for _ in range(2)])
        self.head = nn.Linear(64, 1)

    def forward(self, h, x, y):
        others = 1 - torch.eye(32)[..., None]
        for m in self.layers:
            d = x[:, :, None] - x[:, None]
            e = F.silu(m["target"](h)[:, :, None] + m["source"](h)[:, None] + m["far"]((d * d).sum(-1, keepdim=True)))
            e = F.silu(m["message"](e))
            x = x + (d * m["pull2"](F.silu(m["pull1"](e)))).sum(2) / 31
            h = h + m["node2"](F.silu(m["node1"](torch.cat((h, (e * others).sum(2)), -1))))
        return F.mse_loss(self.head(h.mean(1))[:, 0], y)

    def data(self):
        return torch.randn(16, 32, 64), torch.randn(16, 32, 3), torch.randn(16)


class Involution(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.head = nn.Conv2d(3, 64, 3, padding=1), nn.Linear(64, 10)
        self.l = nn.ModuleList([nn.ModuleDict(dict(
            reduce=nn.Conv2d(64, 16, 1), norm=nn.BatchNorm2d(16), span=nn.Conv2d(16, 196, 1), norm2=nn.BatchNorm2d(64),
            mix=nn.Conv2d(64, 64, 1))) for _ in range(3)])

    def forward(self, x, y):
        h = F.relu(self.into(x))
        for m in self.l:
            k = m["span"](F.relu(m["norm"](m["reduce"](h)))).view(8, 4, 1, 49, 32, 32)
            z = (k * F.unfold(h, 7, padding=3).view(8, 4, 16, 49, 32, 32)).sum(3).view(8, 64, 32, 32)
            h = h + m["mix"](F.relu(m["norm2"](z)))
        return F.cross_entropy(self.head(h.mean((2, 3))), y)

    def data(self):
        return torch.randn(8, 3, 32, 32), torch.randint(10, (8,))


class Interactions(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Parameter(.1 * torch.randn(26000, 16))
        self.deep = nn.Sequential(nn.Linear(416, 256), nn.ReLU(), nn.Linear(256, 1))
        self.w = nn.ModuleList([nn.Conv1d(26 * n, 64, 1, bias=False) for n in (26, 64, 64)])
        self.pool = nn.ModuleList([nn.Linear(64, 1) for _ in range(3)])

    def forward(self, x, y):
        e = F.embedding(x + 1000 * torch.arange(26), self.e)
        o, h = self.deep(e.flatten(1)), e
        for w, p in zip(self.w, self.pool):
            h = w((e[:, :, None] * h[:, None]).flatten(1, 2))
            o = o + p(h.sum(2))
        return F.binary_cross_entropy_with_logits(o[:, 0], y)

    def data(self):
        return torch.randint(1000, (512, 26)), torch.rand(512)


class Deformable(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.head = nn.Conv2d(3, 32, 3, padding=1), nn.Linear(32, 10)
        self.o, self.w = nn.ModuleList([nn.Conv2d(32, 18, 3, padding=1) for _ in range(2)]), parameters(2, 32, 32, 9, scale=.05)

    def forward(self, x, y):
        h = F.relu(self.into(x))
        p = torch.arange(32.)
        for o, w in zip(self.o, self.w):
            o = o(h).view(4, 9, 2, 32, 32)
            r = torch.arange(9)
            u = o[:, :, 0] + p[:, None] + (r // 3 - 1)[:, None, None]
            v = o[:, :, 1] + p + (r % 3 - 1)[:, None, None]
            grid = torch.stack((2 * (v + .5) / 32 - 1, 2 * (u + .5) / 32 - 1), -1).view(4, 9 * 32, 32, 2)
            s = F.grid_sample(h, grid, align_corners=False).view(4, 32, 9, 32, 32)
            h = F.relu(torch.einsum("bcrpq,kcr->bkpq", s, w))
        return F.cross_entropy(self.head(h.mean((2, 3))), y)

    def data(self):
        return torch.randn(4, 3, 32, 32), torch.randint(10, (4,))


class Video(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.head = nn.Conv3d(3, 32, (1, 3, 3), padding=(0, 1, 1), bias=False), nn.Linear(32, 10)
        self.space = nn.ModuleList([nn.Conv3d(32, 48, (1, 3, 3), padding=(0, 1, 1), bias=False) for _ in range(2)])
        self.norm = nn.ModuleList([nn.BatchNorm3d(48) for _ in range(2)])
        self.time = nn.ModuleList([nn.Conv3d(48, 32, (3, 1, 1), padding=(1, 0, 0), bias=False) for _ in range(2)])

    def forward(self, x, y):
        h = self.into(x)
        for s, n, t in zip(self.space, self.norm, self.time):
            h = h + t(F.relu(n(s(F.relu(h)))))
        return F.cross_entropy(self.head(h.mean((2, 3, 4))), y)

    def data(self):
        return torch.randn(2, 3, 8, 32, 32), torch.randint(10, (2,))


class Edges(nn.Module):
    def __init__(self):
        super().__init__()
        self.edge = nn.ModuleList([nn.Linear(2 * c, 64) for c in (3, 64, 64)])
        self.head = nn.Linear(64, 10)

    def forward(self, x, k, y):
        h = x
        batch = torch.arange(len(x))[:, None, None]
        for e in self.edge:
            near = h[batch, k]
            h = F.leaky_relu(e(torch.cat([h[:, :, None].expand_as(near), near], -1)), 0.2).amax(2)
        return F.cross_entropy(self.head(h.amax(1)), y)

    def data(self):
        return torch.randn(4, 256, 3), torch.randint(256, (4, 256, 16)), torch.randint(10, (4,))


class Rotate(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.f, self.p = nn.Embedding(5000, 64), nn.Embedding(5000, 64), nn.Embedding(50, 64)

    def forward(self, s, r, o):
        a, b, p = self.e(s), self.f(s), self.p(r)
        c = (a * p.cos() - b * p.sin())[:, None] - self.e(o)
        t = (a * p.sin() + b * p.cos())[:, None] - self.f(o)
        n = (c * c + t * t + 1e-9).sqrt().sum(-1)
        z = torch.cat((6 - n[:, :1], n[:, 1:] - 6), 1)
        return -F.logsigmoid(z).mean()

    def data(self):
        return torch.randint(5000, (256,)), torch.randint(50, (256,)), torch.randint(5000, (256, 33))


NETS = {c.__name__.lower(): c for c in (Gat, Points, Mamba, Hyena, Retnet, Swin, Unet, Diffusion, Wavenet, Vqvae, Automaton, Kan, Experts, Fno,
                                          Transformer, Quaternion, Pixelcnn, Bayes, Volume, Ctc, Vocoder, Butterfly, Molecules,
                                          Involution, Interactions, Deformable, Rotate, Video, Edges)}
# Mamba's loop is unrolled: torch.compile takes minutes for it
VARIANTS = {name: {"torch": ["user"], "compile": [] if name == "mamba" else ["user"], "jax": []} for name in NETS}


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--peer", choices=("torch", "compile"))
    ap.add_argument("--net", choices=NETS)
    ap.add_argument("--variant")
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--seconds", type=float, default=2)
    ap.add_argument("--device", default="cpu")
    ap.add_argument("--start", type=float, default=START, help="when the process was started (seconds since 1970)")
    ap.add_argument("--list", action="store_true")
    args = ap.parse_args()
    if args.list:
        print(json.dumps(VARIANTS))
        return
    if not args.peer or not args.net:
        ap.error("--peer and --net are needed")
    torch.set_num_threads(args.threads)
    torch.set_default_device(args.device)
    net = NETS[args.net]()
    data, run = net.data(), torch.compile(net) if args.peer == "compile" else net
    adam = torch.optim.Adam(net.parameters(), 1e-3, fused=True)

    def train():
        adam.zero_grad(set_to_none=True)
        loss = run(*data)
        loss.backward()
        adam.step()
        return loss.item()

    train()
    row = {"first_s": time.time() - args.start, "step_ms": median_ms(train, args.seconds)}
    row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(row))


if __name__ == "__main__":
    main()
