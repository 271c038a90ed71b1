#!/usr/bin/env python3
"""attack.py [--first N] [--count N] [--seconds S] [--tool tools/ricci]

Mutated texts through the program `ricci`: show, grad and run. Each is a text of programs.txt or of
docs/notation.md whose tokens are deleted, repeated, swapped or replaced, with huge numbers, deep
nesting or odd bytes put in. Every call must succeed or say an error: a signal, a sanitizer's report
(use a build of configure --enable-asan), more than 20 seconds, or an error without a word is a
failure and printed as a command. A call is a function of its number. Output: the totals."""
import argparse, os, random, re, struct, subprocess, sys, tempfile, time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TOKEN = re.compile(rb"(?:max|min)=|[A-Za-z_]\w*|\d+\.?\d*(?:e-?\d+)?|[<>=!+*]=|&&|\|\||\.\.|\S")
NUMBERS = [b"0", b"-1", b"9223372036854775807", b"9223372036854775808", b"4611686018427387904*3",
           b"1" + b"0" * 400, b"1e400", b"1e-400", b"nan", b"inf", b"2147483648", b"65535*65535", b"0.5", b"1e308"]
BYTES = [b"\xff", b"\xc3\xa9", b"\x01", b"\x7f", b"\r", b"\t", b"%s%n", b"//", b"\\", b"'", b'"', b"#", b"@", b"^"]
WORDS = [b"where", b"else", b"in", b"i", b"j", b"A", b"[", b"]", b"(", b")", b"?", b":", b";", b",", b"%", b"/", b"-",
         b"max=", b"*=", b"..", b".size(0)", b"random(1)", b"exp(", b"i32(", b"pow(", b"stop_gradient(", b"==", b"!"]
TYPES = ["f32", "f64", "bf16", "f16", "i8", "u8", "i32", "i64", "bool"]
SIZE = {"f32": 4, "f64": 8, "bf16": 2, "f16": 2, "i8": 1, "u8": 1, "i32": 4, "i64": 8, "bool": 1}
CODE = {"f32": "<f4", "f64": "<f8", "f16": "<f2", "i8": "|i1", "u8": "|u1", "i32": "<i4", "i64": "<i8", "bool": "|b1"}


def sources():
    """(text, {operand: (type, extents)})"""
    found, text, operands = [], None, {}
    for line in open(os.path.join(ROOT, "tests/tools/programs.txt"), "rb"):
        word, _, rest = line.strip().partition(b" ")
        if word == b"text":
            text = rest
        elif word == b"operand" and len(rest.split()) == 5:
            name, t, _, _, shape = rest.decode().split()
            operands[name] = (t, [int(x) for x in shape.split("x")] if shape != "scalar" else [])
        elif word == b"end":
            if text:
                found.append((text, operands))
            text, operands = None, {}
    page = open(os.path.join(ROOT, "docs/notation.md"), "rb").read()
    for code in re.findall(rb"`([^`\n]+)`|^    (.+)$", page, re.M):
        if re.search(rb"\w\[.*=", code[0] or code[1]):
            found.append((code[0] or code[1], {}))
    return found


def nested(r):
    n, kind = r.choice([5, 80, 255, 257, 3000]), r.randrange(5)
    return [b"(" * n + b"i" + b")" * n, b"-" * n + b"i", b"A[" * n + b"i" + b"]" * n, b"i+" * n + b"i",
            b"i?" * n + b"i" + b":i" * n][kind]


def mutate(r, text):
    tokens = TOKEN.findall(text)
    for _ in range(r.choice([0, 1, 1, 1, 2, 2, 3, 6])):
        if not tokens:
            break
        i, j, how = r.randrange(len(tokens)), r.randrange(len(tokens)), r.randrange(9)
        if how == 0:
            del tokens[i]
        elif how == 1:
            tokens.insert(i, tokens[j])
        elif how == 2:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        elif how == 3:
            numbers = [k for k, t in enumerate(tokens) if t[:1].isdigit()]
            tokens[r.choice(numbers) if numbers else i] = r.choice(NUMBERS)
        elif how == 4:
            tokens[i] = r.choice(WORDS)
        elif how == 5:
            tokens.insert(i, r.choice(WORDS + BYTES))
        elif how == 6:
            tokens[i:i + 1] = tokens[i:i + 1] * r.choice([2, 3, 50])
        elif how == 7:
            tokens[i] = nested(r)
        else:
            tokens[i] = tokens[j]
    return b"".join(b" " + t + b" " if t[:1].isalpha() else t for t in tokens).replace(b"\0", b"")


def bound(r, text, known):
    """The operands as they were, mostly; names that came in, and some of the others, are drawn."""
    names = [n.decode() for n in re.findall(rb"([A-Za-z_]\w*)\s*(?:\[|\.size)", text)]
    out = {}
    for n in dict.fromkeys(names):
        if n in known and r.randrange(12):
            out[n] = known[n]
        elif r.randrange(3) or n not in known:
            most = r.choice([0, 1, 2, 3, 3, 17])
            at = re.search(n.encode() + rb"\s*\[([^\]]*)\]", text)
            rank = at[1].count(b",") + 1 if at and r.randrange(8) else r.randrange(4)
            out[n] = (r.choice(TYPES + 4 * TYPES[:2]), [r.choice([1, 2, 5, 9, most]) for _ in range(min(rank, 6))])
    assigned = re.findall(rb"(?:^|;)\s*([A-Za-z_]\w*)\s*\[", text)
    return {n: x for n, x in out.items() if n.encode() not in assigned}


def npy(r, path, t, shape):
    count = 1
    for n in shape:
        count *= n
    if t in ("f32", "f64"):
        values = [r.choice([r.uniform(-2, 2), 0.0, -0.0, 1e30, 1e-40, float("inf"), float("nan")]) for _ in range(count)]
        data = struct.pack("<%d%s" % (count, "f" if t == "f32" else "d"), *values)
    else:
        data = bytes(r.choice([0, 0, 0, 1, 2, 255]) if t != "bool" else r.randrange(2) for _ in range(count * SIZE[t]))
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (CODE[t], "".join("%d, " % n for n in shape))
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode().ljust(117) + b"\n" + data)


def call(options, number, found, folder):
    r = random.Random(number)
    text, known = r.choice(found)
    text = mutate(r, text)[:100000]  # what a command line takes
    command = ["show", "grad", "run"][number % 3]
    args = [options.tool.encode(), command.encode(), text]
    for name, (t, shape) in bound(r, text, known).items():
        if command == "run" and t in CODE:
            npy(r, os.path.join(folder, name + ".npy"), t, shape)
            args.append(("%s=%s" % (name, os.path.join(folder, name + ".npy"))).encode())
        else:
            args.append(("%s=%s:%s" % (name, "x".join(map(str, shape)) or "scalar", t)).encode())
    if command == "run":
        args += [b"--backend", r.choice([b"interp", b"tcc"])]
    try:
        done = subprocess.run(args, capture_output=True, timeout=20, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return args, "more than 20 s"
    if done.returncode < 0:
        return args, "signal %d" % -done.returncode
    if re.search(rb"Sanitizer|runtime error:|Assertion", done.stderr):
        return args, done.stderr.decode(errors="replace")[:3000]
    if done.returncode and not done.stderr:
        return args, "exit status %d without a message" % done.returncode
    return None, done.returncode == 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--first", type=int, default=1)
    p.add_argument("--count", type=int, default=6000)
    p.add_argument("--seconds", type=float, default=1e9)
    p.add_argument("--tool", default="tools/ricci")
    options = p.parse_args()
    found, failed, good, start, n = sources(), 0, 0, time.time(), 0
    with tempfile.TemporaryDirectory() as folder:
        while n < options.count and time.time() - start < options.seconds:
            args, what = call(options, options.first + n, found, folder)
            n += 1
            good += what is True
            if args:
                failed += 1
                print("number %d: %s\n%s" % (options.first + n - 1, what, " ".join(map(repr, args))), flush=True)
    print("%d texts of %d sources, %d accepted; %d passed, %d failed" % (n, len(found), good, n - failed, failed))
    sys.exit(failed > 0)


main()
