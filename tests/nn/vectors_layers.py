"""The layers of vectors.py: functions of PyTorch with drawn operands. A list is drawn from one seed, so that cases added to another
one leave its numbers as they are. What a case is in Ricci stands under the same name in test_layers_torch.c."""
import torch
import torch.nn.functional as F

CASES = []


def case(name, fn, *operands, train=0):
    CASES.append((name, fn, operands, train))


def f(*shape, low=-1.0, high=1.0):
    return ("in", (torch.rand(shape, dtype=torch.float64) * (high - low) + low))


def distinct(*shape):
    """No two elements are equal or near, so maxima have no ties."""
    n = torch.Size(shape).numel()
    return ("in", (torch.randperm(n).double() / n * 2 - 1 + 0.0003).reshape(shape))


def state(*values):
    return ("state", torch.tensor(values, dtype=torch.float64))


def ints(values):
    return ("i64", torch.tensor(values))


def basic():
    # products
    case("linear", F.linear, f(3, 5), f(4, 5), f(4))
    case("linear without bias, rank 1", F.linear, f(5), f(4, 5))
    case("linear rank 4", F.linear, f(2, 1, 3, 5), f(4, 5), f(4))
    case("embedding", lambda t, w: F.embedding(t, w), ints([[1, 4, 1], [0, 3, 1]]), f(5, 3))

    # convolutions
    case("conv 1-d", F.conv1d, f(2, 3, 7), f(4, 3, 3), f(4))
    case("conv 2-d stride, pad and dilation a dimension",
         lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
         f(2, 3, 7, 6), f(4, 3, 3, 2), f(4))
    case("conv 3-d", lambda x, w: F.conv3d(x, w, stride=2, padding=1), f(1, 2, 4, 5, 3), f(2, 2, 3, 2, 3))
    case("conv groups", lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=2),
         f(2, 4, 5, 4), f(6, 2, 3, 3), f(6))
    case("conv groups without bias, 1-d", lambda x, w: F.conv1d(x, w, stride=3, groups=3), f(2, 6, 8), f(3, 2, 2))
    case("conv depthwise", lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1, groups=3),
         f(2, 3, 5, 6), f(3, 1, 3, 3), f(3))
    case("conv depthwise, two a channel", lambda x, w: F.conv2d(x, w, groups=3), f(1, 3, 4, 4), f(6, 1, 2, 2))
    case("transposed 1-d", F.conv_transpose1d, f(2, 3, 5), f(3, 4, 3), f(4))
    case("transposed stride and pad",
         lambda x, w, b: F.conv_transpose2d(x, w, b, stride=(2, 3), padding=(1, 0), output_padding=(1, 2)),
         f(2, 3, 4, 3), f(3, 2, 3, 2), f(2))
    case("transposed groups and dilation",
         lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, groups=2, dilation=(1, 2)),
         f(1, 4, 3, 4), f(4, 3, 2, 3))
    case("transposed 3-d", lambda x, w: F.conv_transpose3d(x, w, stride=(1, 2, 1), dilation=(2, 3, 1)),
         f(1, 2, 2, 3, 2), f(2, 1, 2, 2, 2))

    # pooling
    case("max pool", lambda x: F.max_pool2d(x, 3, 2, 1), distinct(2, 2, 7, 6))
    case("max pool 1-d dilation", lambda x: F.max_pool1d(x, 2, 3, 1, 2), distinct(2, 2, 9))
    case("max pool 3-d", lambda x: F.max_pool3d(x, (1, 2, 2)), distinct(1, 2, 3, 4, 5))
    case("avg pool", lambda x: F.avg_pool2d(x, 3, 2, 1), f(2, 2, 7, 6))
    case("avg pool without pad", lambda x: F.avg_pool2d(x, (3, 2), 2, (1, 1), count_include_pad=False), f(2, 2, 7, 6))
    case("avg pool 1-d", lambda x: F.avg_pool1d(x, 4, 2, 2, count_include_pad=False), f(1, 2, 8))
    case("adaptive avg", lambda x: F.adaptive_avg_pool2d(x, (3, 2)), f(2, 2, 7, 6))
    case("adaptive avg 1-d", lambda x: F.adaptive_avg_pool1d(x, 4), f(1, 2, 6))
    case("adaptive max", lambda x: F.adaptive_max_pool2d(x, (3, 4)), distinct(1, 2, 7, 6))
    case("adaptive max 3-d", lambda x: F.adaptive_max_pool3d(x, (2, 1, 3)), distinct(1, 1, 3, 2, 4))
    case("global avg", lambda x: x.mean((2, 3, 4)), f(2, 2, 2, 3, 2))
    case("global max", lambda x: x.amax(2), distinct(2, 3, 5))

    # normalisation
    for train in 0, 1:
        case(f"batch norm {train}", lambda x, m, v, w, b, train=train: F.batch_norm(x, m, v, w, b, bool(train), 0.2, 1e-3),
             f(3, 2, 2, 3), state(0.3, -0.2), state(0.6, 1.5), f(2), f(2), train=train)
        case(f"batch norm plain {train}", lambda x, m, v, train=train: F.batch_norm(x, m, v, training=bool(train)),
             f(4, 3), state(0.3, -0.2, 0.0), state(0.6, 1.5, 1.0), train=train)
    case("batch norm without statistics", lambda x, w: F.batch_norm(x, None, None, w, None, True), f(3, 2, 4), f(2))
    case("layer norm", lambda x, w, b: F.layer_norm(x, (5,), w, b, 1e-3), f(2, 3, 5), f(5), f(5))
    case("layer norm of two", lambda x, w: F.layer_norm(x, (3, 4), w), f(2, 3, 4), f(3, 4))
    case("layer norm of all", lambda x: F.layer_norm(x, (3, 4)), f(3, 4))
    case("group norm", lambda x, w, b: F.group_norm(x, 2, w, b, 1e-3), f(2, 6, 3, 2), f(6), f(6))
    case("group norm plain", lambda x: F.group_norm(x, 3), f(2, 6, 4))
    case("instance norm", lambda x, w: F.instance_norm(x, weight=w), f(2, 3, 4, 2), f(3))
    case("rms norm", lambda x, w: x * (x * x).mean(-1, True).add(1e-3).rsqrt() * w, f(2, 3, 5), f(5))
    case("dropout 0", lambda x: x, f(2, 3))

    # elements
    WIDE = (2, 3, 4)
    for name in ("relu", "relu6", "sigmoid", "tanh", "gelu", "silu", "selu", "softplus", "mish", "hardswish"):
        case(name, getattr(F, name, None) or getattr(torch, name), f(*WIDE, low=-8, high=8))
    # not F.hardsigmoid, whose gradient is 1/6 in f32
    case("hardsigmoid", lambda x: (x / 6 + 0.5).clamp(0, 1), f(*WIDE, low=-8, high=8))
    case("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), f(*WIDE, low=-4, high=4))
    case("elu", lambda x: F.elu(x, 0.7), f(*WIDE, low=-4, high=4))
    case("leaky relu", lambda x: F.leaky_relu(x, 0.2), f(*WIDE, low=-4, high=4))
    case("relu of a scalar", F.relu, f())
    case("softmax", lambda x: x.softmax(-1), f(*WIDE, low=-90, high=90))
    case("log softmax", lambda x: x.log_softmax(-1), f(*WIDE, low=-90, high=90))
    case("log softmax, rank 1", lambda x: x.log_softmax(-1), f(5))

    # places
    case("concat", lambda a, b, c: torch.cat([a, b, c], 1), f(2, 3, 2), f(2, 1, 2), f(2, 4, 2))
    case("concat last", lambda a, b: torch.cat([a, b], -1), f(3), f(2))
    case("slice", lambda x: x[:, 1:6:2], f(2, 7, 2))
    case("pad", lambda x: F.pad(x, (1, 0, 0, 2), value=0.5), f(2, 3, 2))
    case("reshape", lambda x: x.reshape(4, 3, 6), f(2, 6, 3, 2))
    case("reshape merge and split", lambda x: x.reshape(3, 2, 10), f(6, 2, 5))
    case("reshape across", lambda x: x.reshape(9, 4), f(6, 6))
    case("reshape to ones", lambda x: x.reshape(1, 2, 1, 3, 1), f(6, 1))
    case("reshape to a scalar", lambda x: x.reshape(()), f(1, 1))
    case("flatten", lambda x: x.flatten(1), f(2, 3, 2, 2))
    case("flatten inside", lambda x: x.flatten(1, 2), f(2, 3, 2, 2))
    case("transpose", lambda x: x.permute(2, 0, 3, 1), f(2, 3, 4, 2))
    case("depth to space", lambda x: F.pixel_shuffle(x, 2), f(2, 8, 3, 2))
    case("space to depth", lambda x: F.pixel_unshuffle(x, 3), f(1, 2, 6, 3))
    case("channel shuffle", lambda x: x.reshape(2, 3, 2, 2).transpose(1, 2).reshape(2, 6, 2), f(2, 6, 2))


def pooling():
    case("max pool, rounded up", lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), distinct(2, 2, 6, 7))
    case("max pool, rounded up, pad and dilation", lambda x: F.max_pool2d(x, (2, 3), (3, 2), (1, 1), (2, 1), ceil_mode=True),
         distinct(1, 2, 8, 6))
    case("max pool, stride beyond the window", lambda x: F.max_pool1d(x, 2, 4, ceil_mode=True), distinct(1, 2, 10))
    case("avg pool, rounded up", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), f(2, 2, 6, 7))
    case("avg pool, rounded up, without pad",
         lambda x: F.avg_pool2d(x, (3, 2), (3, 2), 1, ceil_mode=True, count_include_pad=False), f(1, 2, 6, 5))
    case("lp pool", lambda x: F.lp_pool2d(x, 2, 3, 2), f(2, 2, 7, 6))
    case("lp pool of 3, 1-d", lambda x: F.lp_pool1d(x, 3.0, 2), f(2, 2, 7, low=0.1))
    case("max unpool", lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), distinct(2, 2, 4, 6))
    def scattered(values, places, n):
        return torch.zeros(*values.shape[:2], n, dtype=values.dtype).scatter(2, places, values)

    case("max unpool, pad and dilation, 1-d",
         lambda x: scattered(*F.max_pool1d(x, 2, 3, 1, 2, return_indices=True), 9), distinct(1, 2, 9))
    case("max unpool, 3-d", lambda x: F.max_unpool3d(*F.max_pool3d(x, (1, 2, 2), ceil_mode=True, return_indices=True), (1, 2, 2),
                                                     output_size=[2, 3, 5]), distinct(1, 1, 2, 3, 5))


def rows():
    case("embedding, padded", lambda t, w: F.embedding(t, w, padding_idx=1), ints([[1, 4, 1], [0, 3, 1]]), f(5, 3))
    case("embedding, padded from the end", lambda t, w: F.embedding(t, w, padding_idx=-2), ints([3, 2, 3]), f(5, 3))


def elements():
    WIDE = (2, 3, 4)
    for name in ("softsign", "logsigmoid", "tanhshrink"):
        case(name, getattr(F, name), f(*WIDE, low=-8, high=8))
    # not F.celu, whose gradient has f32's digits
    case("celu", lambda x: torch.where(x > 0, x, 0.7 * torch.expm1(x / 0.7)), f(*WIDE, low=-4, high=4))
    case("softshrink", lambda x: F.softshrink(x, 0.5), f(*WIDE))
    case("hardshrink", lambda x: F.hardshrink(x, 0.5), f(*WIDE))
    case("hardtanh", lambda x: F.hardtanh(x, -0.5, 0.25), f(*WIDE))
    case("clamp from below", lambda x: x.clamp(min=0.25), f(*WIDE))
    case("prelu", F.prelu, f(*WIDE), f(3))
    case("prelu of one", F.prelu, f(*WIDE), f(1))
    case("glu", lambda x: F.glu(x, 1), f(2, 6, 3))
    case("glu of the last", lambda x: F.glu(x), f(2, 4))


def images():
    case("upsample nearest", lambda x: F.interpolate(x, (7, 3)), f(1, 2, 4, 5))
    case("upsample linear", lambda x: F.interpolate(x, 7, mode="linear"), f(2, 2, 3))
    case("upsample bilinear", lambda x: F.interpolate(x, (3, 8), mode="bilinear"), f(1, 2, 4, 5))
    case("upsample bilinear, corners", lambda x: F.interpolate(x, (7, 1), mode="bilinear", align_corners=True), f(1, 2, 4, 5))
    case("upsample trilinear", lambda x: F.interpolate(x, (4, 3, 5), mode="trilinear"), f(1, 1, 2, 3, 3))
    case("unfold", lambda x: F.unfold(x, (3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 1)), f(2, 2, 5, 4))
    case("fold", lambda x: F.fold(x, (5, 4), (3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 1)), f(2, 12, 6))
    case("fold without overlap", lambda x: F.fold(x, (4, 6), 2, stride=2), f(1, 8, 6))
    case("pad reflect", lambda x: F.pad(x, (2, 1, 0, 3), mode="reflect"), f(1, 2, 4, 3))
    case("pad replicate", lambda x: F.pad(x, (2, 4, 1, 0), mode="replicate"), f(1, 2, 4, 3))
    case("pad circular", lambda x: F.pad(x, (2, 3, 0, 1), mode="circular"), f(1, 2, 4, 3))
    case("local response norm", lambda x: F.local_response_norm(x, 3, 0.5, 0.75, 2.0), f(2, 5, 3))
    case("local response norm of four", lambda x: F.local_response_norm(x, 4, 0.3), f(2, 5, 2, 2))


def pairs():
    case("bilinear", F.bilinear, f(2, 3, 4), f(2, 3, 5), f(3, 4, 5), f(3))
    case("bilinear without bias", F.bilinear, f(4), f(5), f(3, 4, 5))
    case("cosine similarity", lambda a, b: F.cosine_similarity(a, b, -1), f(2, 3, 4), f(2, 3, 4))
    # not F.cosine_similarity, whose gradient leaves the clipping out
    case("cosine similarity of small ones",
         lambda a, b: (a * b).sum(-1) / (a.norm(dim=-1).clamp(min=0.75) * b.norm(dim=-1).clamp(min=0.75)), f(4, 3), f(4, 3))
    case("pairwise distance", lambda a, b: F.pairwise_distance(a, b), f(4, 3), f(4, 3))
    case("pairwise distance, cubes", lambda a, b: F.pairwise_distance(a, b, 3.0, 0.0), f(4, 3), f(4, 3))
    case("triplet", lambda a, p, n: F.triplet_margin_loss(a, p, n, 0.5), f(6, 3), f(6, 3), f(6, 3))
    case("cosine embedding", lambda t, a, b: F.cosine_embedding_loss(a, b, t, 0.25), ints([1, -1, -1, 1, -1, -1]), f(6, 3), f(6, 3))
    case("ranking", lambda a, b, t: F.margin_ranking_loss(a, b, t, 0.25), f(6), f(6),
         state(1.0, -1.0, 1.0, 1.0, -1.0, -1.0))
    case("nll", lambda t, x: F.nll_loss(x, t), ints([1, 0, 2]), f(3, 4))
    case("poisson nll", lambda x, t: F.poisson_nll_loss(x, t), f(3, 4), f(3, 4, low=0.0, high=3.0))
    case("gaussian nll", lambda x, t, v: F.gaussian_nll_loss(x, t, v), f(3, 4), f(3, 4), f(3, 4, low=0.1, high=2.0))


LISTS = ((19, basic), (20, pooling), (21, rows), (22, elements), (23, images), (24, pairs))


def drawn(seed, make):
    """The cases that `make` lists."""
    CASES.clear()
    torch.manual_seed(seed)
    make()
    return list(CASES)
