#!/usr/bin/env python3
"""Records tests/autodiff/vectors.txt: operators as Ricci equations, with values, gradients and second-order
products that PyTorch's autograd computes for the same operator in float64.

    python3 tests/autodiff/make_vectors.py > tests/autodiff/vectors.txt

Each case: its text, the operands in the order of the text, the value y, a seed dy, for each float operand A its
gradient dA = d<dy, y>/dA, a direction uA, and hA = d(sum over A of <uA, dA>)/dA.
"""
import sys
import torch
import torch.nn.functional as F

torch.manual_seed(7)
CASES = []


def case(name, text, fn, *operands):
    CASES.append((name, text, fn, operands))


def f(*shape, low=-1.0, high=1.0):
    """An operand drawn uniformly."""
    return ("f64", shape, low, high)


def ints(values):
    return ("i64", torch.tensor(values, dtype=torch.int64))


def zeroed(shape, zeros):
    return ("zeros", shape, zeros)


# ---- convolutions and pooling
case("conv stride 1", "Y[b,k,p,q] += X[b,c,p+r,q+s] * W[k,c,r,s]",
     lambda x, w: F.conv2d(x, w), f(2, 2, 5, 4), f(3, 2, 3, 2))
case("conv stride 2", "Y[b,k,p,q] += X[b,c,2*p+r,2*q+s] * W[k,c,r,s]",
     lambda x, w: F.conv2d(x, w, stride=2), f(1, 2, 7, 8), f(2, 2, 3, 3))
case("conv stride 3", "Y[b,k,p,q] += X[b,c,3*p+r,3*q+s] * W[k,c,r,s]",
     lambda x, w: F.conv2d(x, w, stride=3), f(1, 2, 8, 9), f(2, 2, 2, 3))
case("conv dilation 2", "Y[b,k,p] += X[b,c,p+2*r] * W[k,c,r]",
     lambda x, w: F.conv1d(x, w, dilation=2), f(2, 2, 9), f(2, 2, 3))
case("conv stride 3 dilation 2", "Y[b,k,p] += X[b,c,3*p+2*r] * W[k,c,r]",
     lambda x, w: F.conv1d(x, w, stride=3, dilation=2), f(2, 2, 12), f(2, 2, 3))
case("conv stride 2 dilation 2", "Y[b,k,p] += X[b,c,2*p+2*r] * W[k,c,r]",
     lambda x, w: F.conv1d(x, w, stride=2, dilation=2), f(1, 2, 11), f(2, 2, 3))
case("conv padded", "Y[b,k,p,q] += (X[b,c,p+r-1,q+s-1] else 0) * W[k,c,r,s] where p<4, q<5",
     lambda x, w: F.conv2d(x, w, padding=1), f(2, 2, 4, 5), f(2, 2, 3, 3))
case("conv padded stride 2",
     "Y[b,k,p,q] += (X[b,c,2*p+r-2,2*q+s-2] else 0) * W[k,c,r,s] where p<4, q<3",
     lambda x, w: F.conv2d(x, w, stride=2, padding=2), f(1, 1, 7, 6), f(2, 1, 5, 5))
case("conv groups", "Y[b,g,k,p] += X[b,g,c,p+r] * W[g,k,c,r]",
     lambda x, w: F.conv1d(x.reshape(2, 6, 6), w.reshape(4, 3, 2), groups=2).reshape(2, 2, 2, 5),
     f(2, 2, 3, 6), f(2, 2, 3, 2))
case("conv depthwise", "Y[b,c,p,q] += X[b,c,p+r,q+s] * W[c,r,s]",
     lambda x, w: F.conv2d(x, w[:, None], groups=3), f(1, 3, 4, 4), f(3, 2, 2))
case("conv 1-d", "Y[b,k,p] += X[b,c,p+r] * W[k,c,r]", F.conv1d, f(2, 3, 6), f(2, 3, 3))
case("conv 3-d", "Y[b,k,o,p,q] += X[b,c,2*o+n,p+r,q+s] * W[k,c,n,r,s]",
     lambda x, w: F.conv3d(x, w, stride=(2, 1, 1)), f(1, 1, 5, 3, 3), f(2, 1, 2, 2, 2))
case("conv transposed", "Y[b,k,2*p+r:9,2*q+s:7] += X[b,c,p,q] * W[c,k,r,s]",
     lambda x, w: F.conv_transpose2d(x, w, stride=2), f(1, 2, 4, 3), f(2, 2, 3, 3))
case("conv capsule", "V[b,k,p,q,i,j] += P[b,c,2*p+r,2*q+s,i,t] * W[k,c,r,s,t,j]",
     lambda x, w: torch.einsum("bcpqitrs,kcrstj->bkpqij",
                               x.unfold(2, 2, 2).unfold(3, 2, 2), w),
     f(1, 2, 4, 4, 2, 2), f(2, 2, 2, 2, 2, 2))
case("max pooling", "Y[b,c,p,q] max= X[b,c,2*p+r,2*q+s] where r<2, s<2",
     lambda x: F.max_pool2d(x, 2), f(2, 2, 4, 6))
case("max pooling, overlapping", "Y[b,p,q] max= X[b,2*p+r,2*q+s] where r<3, s<3",
     lambda x: F.max_pool2d(x, 3, 2), f(2, 7, 7))
case("min reduction", "Y[i] min= X[i,j]", lambda x: x.amin(1), f(4, 5))
case("average pooling", "Y[b,c,p,q] += X[b,c,2*p+r,2*q+s] / 9 where r<3, s<3",
     lambda x: F.avg_pool2d(x, 3, 2), f(1, 2, 7, 5))

# ---- normalisation and losses
SOFTMAX = "m[i] max= X[i,j]; e[i,j] = exp(X[i,j]-m[i]); s[i] += e[i,j]; Y[i,j] = e[i,j]/s[i]"
case("softmax", SOFTMAX, lambda x: x.softmax(1), f(3, 5, low=-3, high=3))
case("log-sum-exp", "m[i] max= X[i,j]; s[i] += exp(X[i,j]-m[i]); Y[i] = log(s[i]) + m[i]",
     lambda x: x.logsumexp(1), f(3, 5, low=-3, high=3))
case("layer norm",
     "m[i] += X[i,j]/6; v[i] += (X[i,j]-m[i])*(X[i,j]-m[i])/6;"
     "Y[i,j] = (X[i,j]-m[i])*rsqrt(v[i]+0.1)*G[j] + B[j]",
     lambda x, g, b: F.layer_norm(x, (6,), g, b, 0.1), f(3, 6), f(6), f(6))
case("batch norm",
     "m[c] += X[b,c,p]/12; v[c] += pow(X[b,c,p]-m[c], 2)/12;"
     "Y[b,c,p] = (X[b,c,p]-m[c])/sqrt(v[c]+0.1)*G[c] + B[c]",
     lambda x, g, b: F.batch_norm(x, None, None, g, b, True, 0.1, 0.1), f(3, 2, 4), f(2), f(2))
case("group norm",
     "m[b,g] += X[b,g,c,p]/6; v[b,g] += (X[b,g,c,p]-m[b,g])*(X[b,g,c,p]-m[b,g])/6;"
     "Y[b,g,c,p] = (X[b,g,c,p]-m[b,g])*rsqrt(v[b,g]+0.1)*S[g,c]",
     lambda x, s: F.group_norm(x.reshape(2, 4, 3), 2, s.reshape(4), None, 0.1).reshape(2, 2, 2, 3),
     f(2, 2, 2, 3), f(2, 2))
case("local response normalisation",
     "s[b,c,p] += (X[b,c+k-1,p] else 0)*(X[b,c+k-1,p] else 0) where c<5, k<3;"
     "Y[b,c,p] = X[b,c,p] * pow(1 + s[b,c,p]*0.1/3, 0-0.75)",
     lambda x: F.local_response_norm(x, 3, 0.1, 0.75, 1.0), f(2, 5, 3))
case("cross entropy",
     "m[i] max= X[i,j]; s[i] += exp(X[i,j]-m[i]); L[] += (log(s[i]) + m[i] - X[i,T[i]])/4",
     lambda x, t: F.cross_entropy(x, t), f(4, 5), ints([3, 0, 4, 3]))
case("embedding", "Y[n,d] = E[T[n],d]", lambda e, t: e[t], f(5, 3), ints([4, 1, 1, 0]))
case("scatter", "Y[T[n]:5,d] += X[n,d]*X[n,d]",
     lambda t, x: torch.zeros(5, 3, dtype=x.dtype).index_add(0, t, x * x),
     ints([4, 1, 1, 0]), f(4, 3))

# ---- products
case("attention",
     "A[h,i,j] += Q[h,i,d]*K[h,j,d]*0.5; m[h,i] max= A[h,i,j]; e[h,i,j] = exp(A[h,i,j]-m[h,i]);"
     "s[h,i] += e[h,i,j]; O[h,i,d] += e[h,i,j]/s[h,i]*V[h,j,d]",
     lambda q, k, v: (torch.einsum("hid,hjd->hij", q, k) * 0.5).softmax(-1) @ v,
     f(2, 3, 4), f(2, 5, 4), f(2, 5, 4))
case("matrix product", "Y[i,j] += A[i,k]*B[k,j]", lambda a, b: a @ b, f(3, 4), f(4, 2))
case("bilinear form", "Y[i,j] += A[i,k]*M[k,l]*B[j,l]",
     lambda a, m, b: a @ m @ b.T, f(2, 3), f(3, 4), f(2, 4))
case("trace", "Y[] += A[i,i]", lambda a: a.trace(), f(4, 4))
case("diagonal product", "Y[i] += A[i,i]*A[i,k]*B[k,k]",
     lambda a, b: (a.diagonal()[:, None] * a * b.diagonal()[None]).sum(1), f(4, 4), f(4, 4))
case("triangular product", "Y[i,j] += k<=i ? A[i,k]*B[k,j] : 0 where k<4",
     lambda a, b: a.tril() @ b, f(4, 4), f(4, 3))
case("cumulative sum", "Y[i] += j<=i ? X[j] : 0 where i<6, j<6", lambda x: x.cumsum(0), f(6))
case("gram matrix", "G[b,c,d] += F[b,c,h,w]*F[b,d,h,w]/12",
     lambda x: torch.einsum("bchw,bdhw->bcd", x, x) / 12, f(2, 3, 3, 2))
case("product", "Y[i] *= X[i,j]", lambda x: x.prod(1), f(3, 4))
case("product with zeros", "Y[i] *= X[i,j]", lambda x: x.prod(1),
     zeroed((3, 4), [(0, 1), (1, 0), (1, 3)]))
case("correlation volume", "C[b,h,w,u,v] += P[b,c,h,w]*(Q[b,c,h+u-1,w+v-1] else 0) where u<3, v<3",
     lambda p, q: torch.einsum("bchw,bchwuv->bhwuv", p,
                               F.pad(q, (1, 1, 1, 1)).unfold(2, 3, 1).unfold(3, 3, 1)),
     f(1, 2, 4, 3), f(1, 2, 4, 3))

# ---- movement of data
case("depth to space", "Y[b,c,h,w] = X[b,c*4+h%2*2+w%2,h/2,w/2] where c<2, h<6, w<4",
     lambda x: F.pixel_shuffle(x, 2), f(1, 8, 3, 2))
case("space to depth", "Y[b,c,h,w] = X[b,c/4,2*h+c/2%2,2*w+c%2] where c<8, h<3, w<2",
     lambda x: F.pixel_unshuffle(x, 2), f(1, 2, 6, 4))
case("channel shuffle", "Y[b,c,p] = X[b,c%2*3+c/2,p] where c<6",
     lambda x: F.channel_shuffle(x, 2), f(1, 6, 4))
case("roll", "Y[i] = X[(i+2)%7]*X[(i+2)%7] where i<7", lambda x: x.roll(-2)**2, f(7))
case("flip", "Y[i,j] = X[4-i,j]*X[i,j] where i<5", lambda x: x.flip(0) * x, f(5, 2))
case("slice", "Y[i,j] = X[i+1,2*j]*2 where i<3, j<3", lambda x: x[1:4, 0:5:2] * 2, f(5, 6))
case("concatenation", "Y[i,d] = i<3 ? A[i,d]*A[i,d] : B[i-3,d] where i<5",
     lambda a, b: torch.cat([a * a, b]), f(3, 2), f(2, 2))
case("constant padding", "Y[i,j] = X[i-1,j-2] else 0.5 where i<6, j<7",
     lambda x: F.pad(x, (2, 2, 1, 1), value=0.5), f(4, 3))
case("reflection padding", "Y[i] = X[i<2 ? 2-i : i<7 ? i-2 : 10-i] where i<9",
     lambda x: F.pad(x[None], (2, 2), mode="reflect")[0], f(5))
case("nearest upsampling", "Y[b,h,w] = X[b,h/2,w/3]*X[b,h/2,w/3] where h<6, w<6",
     lambda x: (x**2).repeat_interleave(2, 1).repeat_interleave(3, 2), f(1, 3, 2))
case("bilinear upsampling",
     "Y[i] = X[i/2]*0.75 + (i%2 == 0 ? X[max(i/2-1, 0)] : X[min(i/2+1, 4)])*0.25 where i<10",
     lambda x: F.interpolate(x[None, None], scale_factor=2, mode="linear")[0, 0], f(5))
case("im2col", "Y[r,s,p,q] = X[p+r,q+s] where r<2, s<3, p<3, q<3",
     lambda x: x.unfold(0, 2, 1).unfold(1, 3, 1).permute(2, 3, 0, 1), f(4, 5))
case("digits of one axis", "Y[n] = P[n/6,n/2%3,n%2]*P[n/6,n/2%3,n%2] where n<12",
     lambda p: (p**2).reshape(12), f(2, 3, 2))
case("sampling",
     "I[p] = min(max(i64(floor(G[p])), 0), 4); Y[c,p] = X[c,I[p]]*(1-G[p]+f64(I[p])) + X[c,I[p]+1]*(G[p]-f64(I[p]))",
     lambda g, x: x[:, g.floor().long()] * (1 - g + g.floor()) +
     x[:, g.floor().long() + 1] * (g - g.floor()),
     f(4, low=0, high=4), f(2, 6))

# ---- cells and capsules
case("squash",
     "n[b,k] += V[b,k,d]*V[b,k,d]; Y[b,k,d] = V[b,k,d]*n[b,k]/(1+n[b,k])/sqrt(n[b,k]+1e-3)",
     lambda v: v * (v * v).sum(2, True) / (1 + (v * v).sum(2, True)) /
     ((v * v).sum(2, True) + 1e-3).sqrt(), f(2, 3, 4))


def routing(u):
    def squash(v):
        n = (v * v).sum(2, True)
        return v * n / (1 + n) / (n + 1e-3).sqrt()
    b = torch.zeros(u.shape[:3], dtype=u.dtype)
    for _ in range(2):
        v = squash(torch.einsum("bnm,bnmd->bmd", b.softmax(2), u))
        b = b + torch.einsum("bnmd,bmd->bnm", u, v)
    return squash(torch.einsum("bnm,bnmd->bmd", b.softmax(2), u))


def routing_text():
    text = []
    for k in range(3):
        c = "1/3.0" if k == 0 else f"e{k}[b,n,m]/z{k}[b,n]"
        if k:
            last = f" + l{k-1}[b,n,m]" if k > 1 else ""
            text += [f"a{k}[b,n,m] += U[b,n,m,d]*v{k-1}[b,m,d]",
                     f"l{k}[b,n,m] = a{k}[b,n,m]{last}",
                     f"x{k}[b,n] max= l{k}[b,n,m]",
                     f"e{k}[b,n,m] = exp(l{k}[b,n,m]-x{k}[b,n])",
                     f"z{k}[b,n] += e{k}[b,n,m]"]
        text += [f"s{k}[b,m,d] += {c}*U[b,n,m,d]", f"q{k}[b,m] += s{k}[b,m,d]*s{k}[b,m,d]",
                 f"v{k}[b,m,d] = s{k}[b,m,d]*q{k}[b,m]/(1+q{k}[b,m])/sqrt(q{k}[b,m]+1e-3)"]
    return "; ".join(text)


case("capsule routing", routing_text(), routing, f(2, 4, 3, 2))


def lstm(x, h, c, w, v, bias):
    z = torch.einsum("bi,gji->bgj", x, w) + torch.einsum("bi,gji->bgj", h, v) + bias
    i, fo, g, o = z[:, 0].sigmoid(), z[:, 1].sigmoid(), z[:, 2].tanh(), z[:, 3].sigmoid()
    return o * (fo * c + i * g).tanh()


case("LSTM cell",
     "a[b,g,j] += X[b,i]*W[g,j,i]; r[b,g,j] += H[b,i]*V[g,j,i]; z[b,g,j] = a[b,g,j]+r[b,g,j]+B[g,j];"
     "n[b,j] = sigmoid(z[b,1,j])*C[b,j] + sigmoid(z[b,0,j])*tanh(z[b,2,j]);"
     "Y[b,j] = sigmoid(z[b,3,j])*tanh(n[b,j])",
     lambda x, w, h, v, b, c: lstm(x, h, c, w, v, b),
     f(2, 3), f(4, 2, 3), f(2, 2), f(4, 2, 2), f(4, 2), f(2, 2))

# ---- scalar operators
UNARY = {
    "exp": (torch.exp, -1, 1), "expm1": (torch.expm1, -1, 1), "log": (torch.log, 0.2, 2),
    "log1p": (torch.log1p, -0.5, 2), "sqrt": (torch.sqrt, 0.2, 2), "rsqrt": (torch.rsqrt, 0.2, 2),
    "sin": (torch.sin, -2, 2), "cos": (torch.cos, -2, 2), "tan": (torch.tan, -1, 1),
    "tanh": (torch.tanh, -2, 2), "sigmoid": (torch.sigmoid, -3, 3), "erf": (torch.erf, -1, 1),
    "abs": (torch.abs, -1, 1), "sign": (torch.sign, -1, 1), "floor": (torch.floor, -2, 2),
    "ceil": (torch.ceil, -2, 2), "round": (torch.round, -2, 2),
}
for op, (fn, low, high) in UNARY.items():
    case(op, f"Y[i] = {op}(X[i])*X[i]", lambda x, fn=fn: fn(x) * x, f(5, low=low, high=high))
case("max of two", "Y[i] = max(A[i]*B[i], B[i])", lambda a, b: torch.maximum(a * b, b), f(6), f(6))
case("min of two", "Y[i] = min(A[i], B[i]*B[i])", lambda a, b: torch.minimum(a, b * b), f(6), f(6))
case("pow", "Y[i] = pow(A[i], B[i])", torch.pow, f(6, low=0.2, high=2), f(6))
case("quotient", "Y[i] = (A[i]-1)/B[i]", lambda a, b: (a - 1) / b, f(6), f(6, low=0.5, high=2))
case("choice by value", "Y[i] = A[i] < B[i] && 0 < A[i] ? log(A[i])*B[i] : A[i]*B[i]*B[i]",
     lambda a, b: torch.where((a < b) & (a > 0), a.clamp(min=1e-9).log() * b, a * b * b),
     f(8), f(8))
case("gelu", "Y[i] = 0.5*X[i]*(1+erf(X[i]*0.7071067811865476))", F.gelu, f(6, low=-2, high=2))


# ---- more cells
def gates(x, w, h, v):
    return torch.einsum("bi,gji->bgj", x, w), torch.einsum("bi,gji->bgj", h, v)


def mi_lstm(x, w, h, v, alpha, beta, delta, bias, c):
    a, r = gates(x, w, h, v)
    z = alpha * a * r + beta * a + delta * r + bias
    i, fo, g, o = z[:, 0].sigmoid(), z[:, 1].sigmoid(), z[:, 2].tanh(), z[:, 3].sigmoid()
    return o * (fo * c + i * g).tanh()


case("MI-LSTM cell",
     "a[b,g,j] += X[b,i]*W[g,j,i]; r[b,g,j] += H[b,i]*V[g,j,i];"
     "z[b,g,j] = A[g,j]*a[b,g,j]*r[b,g,j] + B[g,j]*a[b,g,j] + D[g,j]*r[b,g,j] + E[g,j];"
     "n[b,j] = sigmoid(z[b,1,j])*C[b,j] + sigmoid(z[b,0,j])*tanh(z[b,2,j]);"
     "Y[b,j] = sigmoid(z[b,3,j])*tanh(n[b,j])",
     mi_lstm, f(2, 3), f(4, 2, 3), f(2, 2), f(4, 2, 2), f(4, 2), f(4, 2), f(4, 2), f(4, 2), f(2, 2))


def scrnn(x, b, s, p, a, h, r, u, v):
    s = 0.05 * x @ b.T + 0.95 * s
    h = (s @ p.T + x @ a.T + h @ r.T).sigmoid()
    return h @ u.T + s @ v.T


case("SCRNN cell",
     "a[b,j] += X[b,i]*B[j,i]; s[b,j] = 0.05*a[b,j] + 0.95*S[b,j];"
     "p[b,j] += s[b,i]*P[j,i]; q[b,j] += X[b,i]*A[j,i]; r[b,j] += H[b,i]*R[j,i];"
     "h[b,j] = sigmoid(p[b,j] + q[b,j] + r[b,j]);"
     "u[b,k] += h[b,j]*U[k,j]; v[b,k] += s[b,j]*V[k,j]; Y[b,k] = u[b,k] + v[b,k]",
     lambda x, b, s, p, a, h, r, u, v: scrnn(x, b, s, p, a, h, r, u, v),
     f(2, 3), f(2, 3), f(2, 2), f(4, 2), f(4, 3), f(2, 4), f(4, 4), f(3, 4), f(3, 2))


def sub_lstm(x, w, h, v, bias, c):
    a, r = gates(x, w, h, v)
    z = (a + r + bias).sigmoid()
    return (z[:, 1] * c + z[:, 2] - z[:, 0]).sigmoid() - z[:, 3]


case("subLSTM cell",
     "a[b,g,j] += X[b,i]*W[g,j,i]; r[b,g,j] += H[b,i]*V[g,j,i];"
     "z[b,g,j] = sigmoid(a[b,g,j]+r[b,g,j]+B[g,j]);"
     "Y[b,j] = sigmoid(z[b,1,j]*C[b,j] + z[b,2,j] - z[b,0,j]) - z[b,3,j]",
     sub_lstm, f(2, 3), f(4, 2, 3), f(2, 2), f(4, 2, 2), f(4, 2), f(2, 2))


def lltm(h, x, w, b, c):
    z = F.linear(torch.cat([h, x], 1), w.reshape(6, 5), b.reshape(6)).reshape(2, 3, 2)
    i, o, g = z[:, 0].sigmoid(), z[:, 1].sigmoid(), F.elu(z[:, 2])
    return (c + g * i).tanh() * o


case("LLTM cell",
     "x[b,i] = i<2 ? H[b,i] : X[b,i-2] where i<5; a[b,g,j] += x[b,i]*W[g,j,i];"
     "z[b,g,j] = a[b,g,j] + B[g,j];"
     "e[b,j] = z[b,2,j] > 0 ? z[b,2,j] : expm1(z[b,2,j]);"
     "Y[b,j] = tanh(C[b,j] + e[b,j]*sigmoid(z[b,0,j])) * sigmoid(z[b,1,j])",
     lltm, f(2, 2), f(2, 3), f(3, 2, 5), f(3, 2), f(2, 2))


def gru(x, w, h, v):
    a, r = gates(x, w, h, v)
    z, s = (a[:, 0] + r[:, 0]).sigmoid(), (a[:, 1] + r[:, 1]).sigmoid()
    return (1 - z) * (a[:, 2] + s * r[:, 2]).tanh() + z * h


case("GRU cell",
     "a[b,g,j] += X[b,i]*W[g,j,i]; r[b,g,j] += H[b,i]*V[g,j,i];"
     "z[b,g,j] = sigmoid(a[b,g,j] + r[b,g,j]) where g<2;"
     "n[b,j] = tanh(a[b,2,j] + z[b,1,j]*r[b,2,j]); Y[b,j] = (1-z[b,0,j])*n[b,j] + z[b,0,j]*H[b,j]",
     gru, f(2, 3), f(3, 2, 3), f(2, 2), f(3, 2, 2))

# ---- more products
case("causal attention",
     "A[i,j] += Q[i,d]*K[j,d]; m[i] max= j<=i ? A[i,j] : 0-1e30;"
     "e[i,j] = j<=i ? exp(A[i,j]-stop_gradient(m[i])) : 0; s[i] += e[i,j]; p[i,j] = e[i,j]/s[i];"
     "O[i,d] += p[i,j]*V[j,d]",
     lambda q, k, v: (q @ k.T).masked_fill(torch.ones(4, 4).triu(1) > 0, -1e30).softmax(1) @ v,
     f(4, 3), f(4, 3), f(4, 2))
case("linear attention",
     "F[i,c] = exp(Q[i,c]); G[j,c] = exp(K[j,c]); S[c,d] += G[j,c]*V[j,d]; Z[c] += G[j,c];"
     "O[i,d] += F[i,c]*S[c,d]; N[i] += F[i,c]*Z[c]; Y[i,d] = O[i,d]/N[i]",
     lambda q, k, v: (q.exp() @ k.exp().T) @ v / (q.exp() @ k.exp().T).sum(1, True),
     f(4, 3), f(5, 3), f(5, 2))
case("scores divided within the product", "O[i,d] += exp(A[i,j])/S[i]*V[j,d]",
     lambda a, s, v: (a.exp() / s[:, None]) @ v, f(4, 5), f(4, low=0.5, high=2), f(5, 3))
case("gated product", "Y[i,j] += sigmoid(A[i,k]*S[k])*B[k,j]*T[i]",
     lambda a, s, b, t: (a * s).sigmoid() @ b * t[:, None], f(3, 4), f(4), f(4, 5), f(3))
case("einsum of four", "Y[i,l] += A[i,j]*B[j,k]*C[k,l]*D[j,l]",
     lambda a, b, c, d: torch.einsum("ij,jk,kl,jl->il", a, b, c, d), f(2, 3), f(3, 4), f(4, 2), f(3, 2))
case("quadratic form", "Y[b] += X[b,i]*A[i,j]*X[b,j]",
     lambda x, a: torch.einsum("bi,ij,bj->b", x, a, x), f(3, 4), f(4, 4))
case("cosine similarity",
     "n[i] += A[i,d]*A[i,d]; m[j] += B[j,d]*B[j,d]; p[i,j] += A[i,d]*B[j,d];"
     "Y[i,j] = p[i,j]*rsqrt(n[i])*rsqrt(m[j])",
     lambda a, b: F.normalize(a) @ F.normalize(b).T, f(3, 4), f(2, 4))
case("squared distances", "Y[i,j] += (A[i,d]-B[j,d])*(A[i,d]-B[j,d])",
     lambda a, b: ((a[:, None] - b[None])**2).sum(2), f(3, 4), f(5, 4))
case("batched triangular product", "Y[b,i,j] += k<=i && j<=k ? A[b,i,k]*B[b,k,j] : 0",
     lambda a, b: a.tril() @ b.tril(), f(2, 4, 4), f(2, 4, 4))
case("cumulative sum of rows, backwards", "Y[b,i] += i<=j ? X[b,j]*X[b,j] : 0 where i<5",
     lambda x: (x * x).flip(1).cumsum(1).flip(1), f(2, 5))
case("long product", "Y[i] *= X[i,j]", lambda x: x.prod(1), zeroed((3, 37), [(1, 5), (2, 3), (2, 36)]))
case("product over two axes", "Y[i] *= X[i,j,k]*W[k]",
     lambda x, w: (x * w).reshape(2, -1).prod(1), zeroed((2, 3, 3), [(0, 1, 2)]), f(3))

# ---- more normalisation, losses, sampling
case("RMS norm", "s[i] += X[i,j]*X[i,j]/6; Y[i,j] = X[i,j]*rsqrt(s[i]+0.1)*G[j]",
     lambda x, g: x * (x * x).mean(1, True).add(0.1).rsqrt() * g, f(3, 6), f(6))
case("instance norm, one pass",
     "s[b,c] += X[b,c,p]; q[b,c] += X[b,c,p]*X[b,c,p]; m[b,c] = s[b,c]/5; v[b,c] = q[b,c]/5 - m[b,c]*m[b,c];"
     "Y[b,c,p] = (X[b,c,p]-m[b,c])*rsqrt(v[b,c]+0.1)",
     lambda x: F.instance_norm(x, eps=0.1), f(2, 2, 5))
case("weight normalisation", "n[k] += W[k,i]*W[k,i]; Y[b,k] += X[b,i]*W[k,i]*G[k]*rsqrt(n[k])",
     lambda w, x, g: x @ (w * (g / w.norm(dim=1))[:, None]).T, f(3, 4), f(2, 4), f(3))
case("log-softmax with a stop",
     "m[i] max= X[i,j]; s[i] += exp(X[i,j]-stop_gradient(m[i])); Y[i,j] = X[i,j]-stop_gradient(m[i])-log(s[i])",
     lambda x: x.log_softmax(1), f(3, 5, low=-3, high=3))
case("softmax of a column", "e[i,j] = exp(X[i,j]); s[j] += e[i,j]; Y[i,j] = e[i,j]/s[j]",
     lambda x: x.softmax(0), f(3, 5, low=-3, high=3))
case("softplus", "Y[i] = max(X[i],0) + log1p(exp(0-abs(X[i])))", F.softplus, f(6, low=-3, high=3))
case("huber loss", "L[] += abs(X[i]-T[i]) < 0.5 ? 0.5*(X[i]-T[i])*(X[i]-T[i]) : 0.5*(abs(X[i]-T[i])-0.25)",
     lambda x, t: F.huber_loss(x, t, reduction="sum", delta=0.5), f(8), f(8))
case("bilinear sampling",
     "I[p] = min(max(i64(floor(U[p])), 0), 2); J[p] = min(max(i64(floor(V[p])), 0), 3);"
     "u[p] = U[p]-f64(I[p]); v[p] = V[p]-f64(J[p]);"
     "Y[c,p] = (1-u[p])*((1-v[p])*X[c,I[p],J[p]] + v[p]*X[c,I[p],J[p]+1])"
     " + u[p]*((1-v[p])*X[c,I[p]+1,J[p]] + v[p]*X[c,I[p]+1,J[p]+1])",
     lambda u, v, x: F.grid_sample(x[None], torch.stack([v / 2 - 1, u * 2 / 3 - 1], 1)[None, None],
                                   align_corners=True)[0, :, 0],
     f(5, low=0, high=3), f(5, low=0, high=4), f(2, 4, 5))
case("bilinear upsampling in two dimensions",
     "H[h,w] = X[h/2,w]*0.75 + (h%2 == 0 ? X[max(h/2-1, 0),w] : X[min(h/2+1, 2),w])*0.25 where h<6;"
     "Y[h,w] = H[h,w/2]*0.75 + (w%2 == 0 ? H[h,max(w/2-1, 0)] : H[h,min(w/2+1, 3)])*0.25 where w<8",
     lambda x: F.interpolate(x[None, None], scale_factor=2, mode="bilinear")[0, 0], f(3, 4))
case("conv transposed, as a gather",
     "Y[b,k,p] += (p-r)%2 == 0 && 0 <= p-r && p-r < 8 ? X[b,c,(p-r)/2]*W[c,k,r] : 0 where p<9",
     lambda x, w: F.conv_transpose1d(x, w, stride=2), f(1, 2, 4), f(2, 2, 3))
case("conv with a norm's scale",
     "Y[b,k,p] += (X[b,c,2*p+r]-M[c])*rsqrt(V[c])*W[k,c,r]",
     lambda x, m, v, w: F.conv1d((x - m[:, None]) * v.rsqrt()[:, None], w, stride=2),
     f(2, 2, 9), f(2), f(2, low=0.5, high=2), f(3, 2, 3))
case("conv of squares", "Y[b,k,p,q] += X[b,c,p+r,q+s]*X[b,c,p+r,q+s]*W[k,c,r,s]",
     lambda x, w: F.conv2d(x * x, w), f(1, 2, 5, 4), f(3, 2, 3, 2))
case("circulant matrix", "Y[b,i] += W[(i-j+8)%8]*X[b,j] where i < 8",
     lambda w, x: x @ torch.stack([w.roll(j) for j in range(8)]), f(8), f(2, 8))
case("weights that are shifted around", "Y[b,i] += X[b,(i-j+7)%9]*W[b,j] where i < 9",
     lambda x, w: torch.stack([sum(w[:, j] * x[:, (i - j + 7) % 9] for j in range(3)) for i in range(9)], 1),
     f(2, 9), f(2, 3))


def numbers(t):
    return " ".join(f"{v:.17g}" for v in t.detach().reshape(-1).tolist())


def tensor_line(kind, t):
    shape = " ".join(str(n) for n in t.shape)
    return f"{kind} {t.dim()} {shape}\n{numbers(t)}"


def draw(spec):
    if spec[0] == "i64":
        return spec[1]
    if spec[0] == "zeros":
        t = torch.rand(spec[1], dtype=torch.float64) + 0.5
        for at in spec[2]:
            t[at] = 0
        return t.requires_grad_()
    _, shape, low, high = spec
    return (torch.rand(shape, dtype=torch.float64) * (high - low) + low).requires_grad_()
case("conv of a norm and a rectifier, padded",
     "Y[b,k,p] += (0 <= p+r-1 && p+r-1 < 6 ? max(X[b,c,p+r-1]*G[c]+B[c], 0) : 0)*W[k,c,r] where p < 6",
     lambda x, g, b, w: F.conv1d(F.relu(x * g[:, None] + b[:, None]), w, padding=1),
     f(2, 2, 6), f(2), f(2), f(3, 2, 3))
case("conv with scales of inputs and outputs, padded",
     "Y[b,k,p,q] += S[b,c]*T[b,k]*(X[b,c,p+r-1,q+s-1] else 0)*W[k,c,r,s] where p < 4, q < 3",
     lambda s, t, x, w: F.conv2d(x * s[:, :, None, None], w, padding=1) * t[:, :, None, None],
     f(2, 2), f(2, 3), f(2, 2, 4, 3), f(3, 2, 3, 3))
case("strided conv of a gated signal", "Y[b,k,p] += sigmoid(X[b,c,2*p+r])*Z[b,c,2*p+r]*W[k,c,r]",
     lambda x, z, w: F.conv1d(x.sigmoid() * z, w, stride=2), f(2, 2, 9), f(2, 2, 9), f(3, 2, 3))
case("product with scales on all sides", "Y[b,k] += A[c]*X[b,c]*W[k,c]*B[k]*C[0]",
     lambda a, x, w, b, c: (x * a) @ w.T * b * c[0], f(4), f(3, 4), f(5, 4), f(5), f(1))


def derivative(y, xs, seed):
    got = torch.autograd.grad(y, xs, seed, create_graph=True, allow_unused=True) \
        if y.requires_grad else [None] * len(xs)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(got, xs)]


def main():
    for name, text, fn, specs in CASES:
        operands = [draw(s) for s in specs]
        y = fn(*operands)
        seed = torch.rand_like(y, requires_grad=False) + 0.5
        floats = [x for x in operands if x.dtype == torch.float64]
        grads = derivative(y, floats, seed)
        directions = [torch.rand_like(x).detach() for x in floats]
        inner = sum((g * u).sum() for g, u in zip(grads, directions))
        second = derivative(inner, floats, None)
        print(f"case {name}\n{text}")
        for x in operands:
            print(tensor_line("f64" if x.dtype == torch.float64 else "i64", x))
        print(tensor_line("y", y))
        print(tensor_line("dy", seed))
        for g, u, h in zip(grads, directions, second):
            print(tensor_line("grad", g) + "\n" + tensor_line("u", u) + "\n" +
                  tensor_line("second", h))
    print("end", len(CASES))


if __name__ == "__main__":
    sys.exit(main())
