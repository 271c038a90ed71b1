"""peer_torch.py - the operations of bench/peer_nets.py in PyTorch, as its users write them, and its training step.

Images are NCHW, with variant `nhwc` (and conv2d_nhwc of the capsules) in channels_last; weights OIHW and [out, in].
"""
import numpy as np
import torch
import torch.nn.functional as F


class Torch:
    channels = 1  # their axis in images

    def __init__(self, variant, threads, compiled, device="cpu"):
        self.variant, self.compiled = variant, compiled
        torch.set_default_device(device)
        self.gpu = torch.device(device).type == "cuda"
        torch.backends.cudnn.allow_tf32 = False  # f32 is f32, as ours
        self.sigmoid, self.tanh, self.elu, self.relu, self.relu6 = torch.sigmoid, torch.tanh, F.elu, F.relu, F.relu6
        self.softmax, self.rsqrt, self.einsum, self.one_hot = torch.softmax, torch.rsqrt, torch.einsum, F.one_hot
        self.stack, self.gelu, self.mse, self.cross_entropy = torch.stack, F.gelu, F.mse_loss, F.cross_entropy
        torch.set_num_threads(threads)

    # ---- operations

    def array(self, a, name=""):
        t = torch.tensor(np.ascontiguousarray(a))
        return t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 and self.variant == "nhwc" else t

    def conv(self, x, p, k, stride=1, pad=0, groups=1):
        return F.conv2d(x, p[k + "_w"], p[k + "_c"] if k + "_c" in p else None, stride, pad, 1, groups)

    def norm(self, x, p, k, training):
        if training:
            return F.batch_norm(x, None, None, p[k + "_g"], p[k + "_b"], True)
        return F.batch_norm(x, p[k + "_mean"], p[k + "_var"], p[k + "_g"], p[k + "_b"])

    def linear(self, x, p, k):
        return F.linear(x, p[k + "_w"], p[k + "_c"] if k + "_c" in p else None)

    def max_pool(self, x):
        return F.max_pool2d(x, 3, 2, 1)

    def avg_pool(self, x):
        return F.avg_pool2d(x, 3, 2, 1)

    def global_mean(self, x):
        return x.mean((2, 3))

    def concat(self, xs):
        return torch.cat(xs, self.channels)

    def split(self, x, n):
        return x.chunk(n, -1)

    def swap(self, x):
        return x.transpose(0, 1).contiguous()

    def zeros(self, *shape):
        return torch.zeros(shape)

    def shuffle(self, x, groups):
        b, c, h, w = x.shape
        return x.reshape(b, groups, c // groups, h, w).transpose(1, 2).reshape(b, c, h, w)

    def layer_norm(self, x, p, k):
        return F.layer_norm(x, x.shape[-1:], p[k + "_g"], p[k + "_b"])

    def attention(self, q, k, v, heads, causal):
        b, s, d = q.shape
        q, k, v = (a.view(b, s, heads, d // heads).transpose(1, 2) for a in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).reshape(b, s, d)

    def scan(self, cell, state, xs):
        """The states after each step, stacked; xs: a tuple of [steps, ..]."""
        states = []
        for t in range(xs[0].shape[0]):
            state = cell(state, tuple(x[t] for x in xs))
            states.append(state)
        return tuple(torch.stack(s) for s in zip(*states))

    def lstm(self, x, p, hidden):
        """PyTorch's own kernels, gates in the order input, forget, new, output; forget gates are opened by 1."""
        opened = torch.zeros(4 * hidden)
        opened[hidden:2 * hidden] = 1
        zero = torch.zeros(1, x.shape[1], hidden)
        return torch.lstm(x, (zero, zero), [p["x_w"], p["h_w"], p["x_c"], opened], True, 1, 0.0, True, False, False)[0]

    # ---- capsules: Y[b,k,p,q,i,j] += X[b,c,stride*p+r,stride*q+s,i,t] * K[k,c,r,s,t,j]

    def capsules(self, x, kernels, squash):
        """x [b, (c i t), h, w] through capsule convolutions, (kernel, stride) each -> poses [b, n, i, t]."""
        b, _, h, w = x.shape
        x = x.view(b, -1, 4, 4, h, w)
        if self.variant == "user":  # what one writes first: patches and einsum
            x = x.permute(0, 1, 4, 5, 2, 3)
            for k, stride in kernels:
                patches = x.unfold(2, 3, stride).unfold(3, 3, stride)  # b c p q i t r s
                x = squash(torch.einsum("bcpqitrs,kcrstj->bkpqij", patches, k), (4, 5))
            return x.reshape(b, -1, 4, 4)
        # one convolution of [(b i), (c t), h, w] with [(k j), (c t), r, s], whose result is the next one's input
        order = torch.channels_last if self.variant == "conv2d_nhwc" else torch.contiguous_format
        x = x.permute(0, 2, 1, 3, 4, 5).reshape(b * 4, -1, h, w).contiguous(memory_format=order)
        for k, stride in kernels:
            n = k.shape[0]
            k = k.permute(0, 5, 1, 4, 2, 3).reshape(n * 4, -1, 3, 3).contiguous(memory_format=order)
            x = F.conv2d(x, k, stride=stride)
            h, w = x.shape[2:]
            x = squash(x.view(b, 4, n, 4, h, w), (1, 3)).reshape(b * 4, n * 4, h, w)
        return x.view(b, 4, n, 4, h * w).permute(0, 2, 4, 1, 3).reshape(b, -1, 4, 4)

    # ---- steps

    def prepare(self, net, parameters, x, y, rate):
        """Functions without arguments: a training step that returns the loss, and the net's output."""
        ops = self

        class Module(torch.nn.Module):
            def __init__(self, training):
                super().__init__()
                self.train(training)
                for name, value in parameters.items():
                    if not (training and name.endswith(("_mean", "_var"))):
                        self.register_parameter(name, torch.nn.Parameter(ops.array(value, name)))

            def forward(self, x, y):
                out = net.output(ops, self._parameters, x, self.training)
                return net.loss(ops, out, y) if self.training else out

        x, y = self.array(x), self.array(y)
        module = Module(True)
        run = torch.compile(module) if self.compiled else module
        sgd = torch.optim.SGD(module.parameters(), lr=rate, fused=True)

        def train():
            sgd.zero_grad(set_to_none=True)
            loss = run(x, y)
            loss.backward()
            sgd.step()
            return loss.item()

        infer_run = None

        def infer():
            nonlocal infer_run
            if infer_run is None:
                infer_run = Module(False)
                if self.compiled:
                    import torch._inductor.config as inductor
                    inductor.freezing = True  # weights are constants
                    infer_run = torch.compile(infer_run)
            with torch.no_grad():
                out = infer_run(x, y)
            if ops.gpu:
                torch.cuda.synchronize()
            return out

        return train, infer
