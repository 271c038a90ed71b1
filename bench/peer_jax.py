"""peer_jax.py - the operations of bench/peer_nets.py in JAX, as its users write them, and its training step (one jit, with the update).

Images are NHWC; weights HWIO and [in, out]. Loops over time are lax.scan. Variant nhwc_split writes grouped convolutions as several, and
depthwise ones as sums of shifted products, which XLA fuses.
"""
import os

import numpy as np


def restrict(threads):
    """XLA has as many threads as there are processors; before it is loaded."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


class Jax:
    channels = -1

    def __init__(self, variant, threads, compiled, device="cpu"):
        if device == "cpu":
            restrict(threads)
        import jax
        import jax.numpy as jnp
        if device != "cpu":
            jax.config.update("jax_default_matmul_precision", "highest")  # no TF32: f32 is f32, as ours
        self.jax, self.np, self.lax, self.variant = jax, jnp, jax.lax, variant
        self.sigmoid, self.tanh, self.elu, self.relu, self.relu6 = jax.nn.sigmoid, jnp.tanh, jax.nn.elu, jax.nn.relu, jax.nn.relu6
        self.softmax, self.rsqrt, self.einsum, self.one_hot = jax.nn.softmax, self.lax.rsqrt, jnp.einsum, jax.nn.one_hot
        self.stack, self.zeros = jnp.stack, lambda *shape: jnp.zeros(shape)

    # ---- operations

    def array(self, a, name=""):
        if name.endswith("_w") and a.ndim == 4:
            a = a.transpose(2, 3, 1, 0)
        elif name.endswith("_w") and a.ndim == 2:
            a = a.T
        elif not name and a.ndim == 4:
            a = a.transpose(0, 2, 3, 1)
        return self.np.asarray(a)

    def conv2d(self, x, w, stride=1, pad=0, groups=1):
        return self.lax.conv_general_dilated(x, w, (stride, stride), [(pad, pad)] * 2, feature_group_count=groups,
                                             dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def conv(self, x, p, k, stride=1, pad=0, groups=1):
        w = p[k + "_w"]
        if self.variant != "nhwc_split" or groups == 1:
            y = self.conv2d(x, w, stride, pad, groups)
        elif w.shape[2] == 1:
            y = self.depthwise(x, w, stride, pad)
        else:
            parts = zip(self.np.split(x, groups, -1), self.np.split(w, groups, -1))
            y = self.np.concatenate([self.conv2d(a, b, stride, pad) for a, b in parts], -1)
        return y + p[k + "_c"] if k + "_c" in p else y

    def depthwise(self, x, w, stride, pad):
        h, v = ((n + 2 * pad - k) // stride + 1 for n, k in zip(x.shape[1:3], w.shape))
        x = self.np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        return sum(x[:, r:r + stride * (h - 1) + 1:stride, s:s + stride * (v - 1) + 1:stride] * w[r, s, 0]
                   for r in range(w.shape[0]) for s in range(w.shape[1]))

    def norm(self, x, p, k, training):
        mean, var = (x.mean((0, 1, 2)), x.var((0, 1, 2))) if training else (p[k + "_mean"], p[k + "_var"])
        return (x - mean) * (self.lax.rsqrt(var + 1e-5) * p[k + "_g"]) + p[k + "_b"]

    def linear(self, x, p, k):
        y = x @ p[k + "_w"]
        return y + p[k + "_c"] if k + "_c" in p else y

    def pool(self, x, first, op):
        return self.lax.reduce_window(x, first, op, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0)))

    def max_pool(self, x):
        return self.pool(x, -np.inf, self.lax.max)

    def avg_pool(self, x):
        return self.pool(x, 0.0, self.lax.add) / 9

    def global_mean(self, x):
        return x.mean((1, 2))

    def concat(self, xs):
        return self.np.concatenate(xs, self.channels)

    def split(self, x, n):
        return self.np.split(x, n, -1)

    def swap(self, x):
        return x.swapaxes(0, 1)

    def gelu(self, x):
        return self.jax.nn.gelu(x, approximate=False)

    def mse(self, a, b):
        return self.np.mean((a - b) ** 2)

    def cross_entropy(self, z, y):
        return -self.np.take_along_axis(self.jax.nn.log_softmax(z), y[:, None], 1).mean()

    def shuffle(self, x, groups):
        b, h, w, c = x.shape
        return x.reshape(b, h, w, groups, c // groups).swapaxes(3, 4).reshape(b, h, w, c)

    def layer_norm(self, x, p, k):
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * self.lax.rsqrt(var + 1e-5) * p[k + "_g"] + p[k + "_b"]

    def attention(self, q, k, v, heads, causal):
        b, s, d = q.shape
        q, k, v = (a.reshape(b, s, heads, d // heads) for a in (q, k, v))
        scores = self.np.einsum("bqhd,bkhd->bhqk", q, k) * (d // heads) ** -0.5
        if causal:
            scores = self.np.where(self.np.tril(self.np.ones((s, s), bool)), scores, -np.inf)
        return self.np.einsum("bhqk,bkhd->bqhd", self.jax.nn.softmax(scores), v).reshape(b, s, d)

    def scan(self, cell, state, xs):
        def body(state, x):
            state = cell(state, x)
            return state, state
        return self.lax.scan(body, state, xs)[1]

    # ---- capsules: Y[b,k,p,q,i,j] += X[b,c,stride*p+r,stride*q+s,i,t] * K[k,c,r,s,t,j]

    def capsules(self, x, kernels, squash):
        """x [b, h, w, (c i t)] -> poses [b, n, i, t]; one convolution of [(b i), h, w, (c t)] each."""
        b, h, w, _ = x.shape
        x = x.reshape(b, h, w, -1, 4, 4).transpose(0, 4, 1, 2, 3, 5).reshape(b * 4, h, w, -1)
        for k, stride in kernels:
            n = k.shape[0]
            x = self.conv2d(x, k.transpose(2, 3, 1, 4, 0, 5).reshape(3, 3, -1, n * 4), stride)
            h, w = x.shape[1:3]
            x = squash(x.reshape(b, 4, h, w, n, 4), (1, 5)).reshape(b * 4, h, w, n * 4)
        return x.reshape(b, 4, h * w, n, 4).transpose(0, 3, 2, 1, 4).reshape(b, -1, 4, 4)

    # ---- steps

    def prepare(self, net, parameters, x, y, rate):
        """Functions without arguments: a training step that returns the loss, and the net's output."""
        jax = self.jax
        statistic = lambda name: name.endswith(("_mean", "_var"))
        p = {k: self.array(v, k) for k, v in parameters.items() if not statistic(k)}
        fixed, x, y = {k: self.array(v, k) for k, v in parameters.items() if statistic(k)}, self.array(x), self.array(y)

        def update(p, x, y):
            loss, g = jax.value_and_grad(lambda p: net.loss(self, net.output(self, p, x, True), y))(p)
            return jax.tree.map(lambda a, b: a - rate * b, p, g), loss

        train_run = jax.jit(update, donate_argnums=0)
        infer_run = jax.jit(lambda p, x: net.output(self, p, x, False))

        def train():
            nonlocal p
            p, loss = train_run(p, x, y)
            jax.block_until_ready(p)
            return float(loss)

        return train, lambda: infer_run(dict(p, **fixed), x).block_until_ready()
