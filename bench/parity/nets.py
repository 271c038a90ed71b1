"""The examples' networks in PyTorch, as functions of parameters by their names in checkpoints.

Each is net(p, x, **sizes) -> scores; p maps names to tensors, x is the batch of samples, already of the right type.
Batch norm uses the batch, as in training, and updates running statistics where p has them; with p["evaluate"] it uses those.
Written from the papers and torchvision's definitions, not from the C.
"""
import torch
import torch.nn.functional as F


def conv_bn(p, x, conv, bn, stride=1, groups=1):
    w = p[conv + ".weight"]
    x = F.conv2d(x, w, None, stride, w.shape[-1] // 2, 1, groups)
    return F.batch_norm(x, p.get(bn + ".running_mean"), p.get(bn + ".running_var"), p[bn + ".weight"], p[bn + ".bias"],
                        not p.get("evaluate"))


def resnet18(p, x):
    x = F.relu(conv_bn(p, x, "conv1", "bn1"))
    for stage in range(1, 5):
        for i in range(2):
            k, stride = f"layer{stage}.{i}.", 2 if stage > 1 and i == 0 else 1
            y = F.relu(conv_bn(p, x, k + "conv1", k + "bn1", stride))
            y = conv_bn(p, y, k + "conv2", k + "bn2")
            if k + "downsample.0.weight" in p:
                x = conv_bn(p, x, k + "downsample.0", k + "downsample.1", stride)
            x = F.relu(x + y)
    return F.linear(x.mean((2, 3)), p["fc.weight"], p["fc.bias"])


def resnet50(p, x):
    x = F.max_pool2d(F.relu(conv_bn(p, x, "conv1", "bn1", 2)), 3, 2, 1)
    for stage, count in enumerate((3, 4, 6, 3), 1):
        for i in range(count):
            k, stride = f"layer{stage}.{i}.", 2 if stage > 1 and i == 0 else 1
            y = F.relu(conv_bn(p, x, k + "conv1", k + "bn1"))
            y = F.relu(conv_bn(p, y, k + "conv2", k + "bn2", stride))
            y = conv_bn(p, y, k + "conv3", k + "bn3")
            if k + "downsample.0.weight" in p:
                x = conv_bn(p, x, k + "downsample.0", k + "downsample.1", stride)
            x = F.relu(x + y)
    return F.linear(x.mean((2, 3)), p["fc.weight"], p["fc.bias"])


def mobilenet_v2(p, x):
    x = F.relu6(conv_bn(p, x, "features.0.0", "features.0.1"))
    n = 1
    for t, count, s in ((1, 1, 1), (6, 2, 1), (6, 3, 2), (6, 4, 2), (6, 3, 1), (6, 3, 2), (6, 1, 1)):
        for i in range(count):
            k, stride, y = f"features.{n}.conv.", s if i == 0 else 1, x
            if t > 1:
                y = F.relu6(conv_bn(p, y, k + "0.0", k + "0.1"))
            last = 1 if t > 1 else 0
            y = F.relu6(conv_bn(p, y, k + f"{last}.0", k + f"{last}.1", stride, y.shape[1]))
            y = conv_bn(p, y, k + f"{last + 1}", k + f"{last + 2}")
            x = x + y if stride == 1 and x.shape[1] == y.shape[1] else y
            n += 1
    x = F.relu6(conv_bn(p, x, "features.18.0", "features.18.1"))
    return F.linear(x.mean((2, 3)), p["classifier.1.weight"], p["classifier.1.bias"])


def shufflenet(p, x, groups=3):
    x = F.relu(conv_bn(p, x, "conv1", "bn1"))
    for stage, count in enumerate((4, 8, 4), 2):
        for i in range(count):
            k, stride = f"stage{stage}.{i}.", 1 if i else 2
            y = F.relu(conv_bn(p, x, k + "conv1", k + "bn1", 1, 1 if stage == 2 and i == 0 else groups))
            b, c, h, w = y.shape
            y = y.view(b, groups, c // groups, h, w).transpose(1, 2).reshape(b, c, h, w)
            y = conv_bn(p, y, k + "conv2", k + "bn2", stride, c)
            y = conv_bn(p, y, k + "conv3", k + "bn3", 1, groups)
            x = F.relu(x + y if stride == 1 else torch.cat([F.avg_pool2d(x, 3, 2, 1), y], 1))
    return F.linear(x.mean((2, 3)), p["fc.weight"], p["fc.bias"])


def squash(v, dims):
    n2 = (v * v).sum(dims, keepdim=True)
    return v * n2 / (1 + n2) * torch.rsqrt(n2 + 1e-7)


def capsule_conv(a, k, stride):
    patches = a.unfold(2, k.shape[2], stride).unfold(3, k.shape[3], stride)
    return squash(torch.einsum("bcpqitrs,kcrstj->bkpqij", patches, k), (4, 5))


def capsnet(p, x, iterations=3):
    x = F.relu(F.conv2d(x, p["stem_w"], p["stem_c"], 2, 2))
    x = F.conv2d(x, p["primary_w"], p["primary_c"])
    b, _, h, w = x.shape
    x = x.view(b, 16, 4, 4, h, w).permute(0, 1, 4, 5, 2, 3)
    x = capsule_conv(capsule_conv(x, p["caps1"], 2), p["caps2"], 1)
    u = torch.einsum("bnit,nmtj->bnmij", x.reshape(b, -1, 4, 4), p["votes"]).flatten(3)
    logits = u.new_zeros(u.shape[:3])
    for i in range(iterations):
        v = squash((torch.softmax(logits, 2).unsqueeze(-1) * u).sum(1), -1)
        logits = logits + (u * v.unsqueeze(1)).sum(-1)
    return v


def margin_loss(v, y):
    n = ((v * v).sum(-1) + 1e-7).sqrt()
    want = F.one_hot(y, n.shape[1]).to(n.dtype)
    return (want * F.relu(0.9 - n) ** 2 + 0.5 * (1 - want) * F.relu(n - 0.1) ** 2).sum(1).mean()


def lstm(p, x):
    """The gates of examples/lstm are [.., 4, hidden]: input, new, forget (plus 1), output."""
    h = c = x.new_zeros(x.shape[0], p["cell_u"].shape[0])
    for t in range(x.shape[1]):
        z = torch.einsum("bi,inj->bnj", x[:, t], p["cell_w"]) + torch.einsum("bk,knj->bnj", h, p["cell_u"]) + p["cell_c"]
        i, n, f, o = z.unbind(1)
        c = torch.sigmoid(i) * torch.tanh(n) + torch.sigmoid(f + 1) * c
        h = torch.sigmoid(o) * torch.tanh(c)
    return F.linear(h, p["out_w"], p["out_c"])
