#!/bin/sh
# test_nets.sh - bench/nets.py: its rows, ratios, tables and chart, with a peer whose figures are known; and, where torch and jax
# are, that the peers' networks are the same in both.
command -v python3 >/dev/null || { echo "0 passed, 0 failed, 1 skipped"; exit 0; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
export RICCI_CACHE="$dir/cache"
skipped=0
. "$(dirname "$0")/checks.sh"

# ---- a build folder whose lstm takes 8 ms a step, and a Python whose torch takes 12 and 10, and has no jax
mkdir -p "$dir/examples"
printf 'examples/lstm examples/scrn:\n' >"$dir/Makefile"
cat >"$dir/examples/lstm" <<'END'
#!/bin/sh
echo '{"name": "lstm", "batch": 64, "step_ms": 8, "infer_ms": 2, "first_s": 0.5, "peak_mb": 50}'
END
cat >"$dir/examples/scrn" <<'END'
#!/bin/sh
echo "scrn: no memory" >&2
exit 1
END
cat >"$dir/python" <<'END'
#!/bin/sh
case "$*" in
-c*torch*) exit 0 ;;
-c*) exit 1 ;;
*--list) echo '{"lstm": {"torch": ["nn", "hoist"]}, "scrn": {"torch": ["hoist"]}}' ;;
*"--variant nn"*) echo '{"step_ms": 12, "infer_ms": 1, "first_s": 2, "peak_mb": 700}' ;;
*) echo '{"step_ms": 10, "infer_ms": 3, "first_s": 4, "peak_mb": 800}' ;;
esac
END
chmod +x "$dir/examples/lstm" "$dir/examples/scrn" "$dir/python"
bench() {
	python3 bench/nets.py --build "$dir" --peer-python "$dir/python" --out "$dir/nets.json" "$@" >"$dir/out" 2>"$dir/err"
}

check "a run with a peer ends well" bench --only lstm --rounds 2 --peers torch,jax
has() { check "no line: $2" grep -qF -- "$2" "$dir/$1"; }
has err "skipped: jax ($dir/python has no jax)"
has out "| lstm | 8 | 10 hoist | 1.25 |"
has out "| lstm | 2 | 1 nn | 0.50 |"
has out "| lstm | 0.5 | 2 nn | 4.00 |"
has out "| lstm | 50 | 700 nn | 14.00 |"
has out "geometric mean, training step, ms: 1.25"
cat >"$dir/look.py" <<'END'
import json, sys, xml.dom.minidom
with open(sys.argv[1] + "/nets.json") as f:
    data = json.load(f)
with open(sys.argv[1] + "/out") as f:
    lines = [json.loads(line) for line in f if line.startswith("{")]
runs = [(r["who"], r["variant"], r["round"]) for r in data["runs"]]
assert lines == data["runs"] and runs == [(w, v, n) for n in (1, 2) for w, v in (("ricci", ""), ("torch", "nn"), ("torch", "hoist"))], runs
assert ["first_s" in r for r in lines] == [True] * 3 + [False] * 3 and ["again_s" in r for r in lines] == [False] * 3 + [True] * 3
bars = [r for r in data["rows"] if "ratio" in r]
assert len(bars) == 5 and data["means"]["infer_ms"] == 0.5
texts = [t.firstChild.data for t in xml.dom.minidom.parse(sys.argv[1] + "/nets.svg").getElementsByTagName("text")]
assert set(texts) >= {"lstm peak memory of training", "lstm first step, caches full", "14.00", "16"}, texts
END
check "JSON and chart hold the same" python3 "$dir/look.py" "$dir"

check "a run without peers ends well" bench --only lstm --rounds 1 --peers ''
has out "| lstm | 8 |"
check "an example that fails makes it fail" sh -c '! "$@"' sh python3 bench/nets.py --build "$dir" --peer-python "$dir/python" \
	--only scrn --rounds 1 --peers torch --out "$dir/nets.json" >"$dir/out" 2>"$dir/err"
has err "scrn, ricci : ended with 1: scrn: no memory"

wrong() { # wrong MESSAGE ARGUMENT...
	message=$1
	shift
	bench "$@"
	check "status of $*" [ $? = 2 ]
	has err "$message"
}
wrong "--peers takes torch, compile, jax" --peers theano
wrong "--only takes capsnet, " --only alexnet
wrong "--rounds and --threads are at least 1, --seconds at least 0" --rounds 0

# ---- the same network in both peers: first loss and size of outputs, in the variants of each
python=${RICCI_PEER_PYTHON:-python3}
cat >"$dir/same.py" <<'END'
import sys
sys.path.insert(0, "bench")
import peer_nets
for name in "lstm", "capsnet":
    net, found = peer_nets.NETS[name], {}
    for peer in "torch", "jax":
        for variant in net.variants[peer]:
            train, infer = peer_nets.prepare(peer, net, variant, 1)
            found[peer, variant] = float(abs(infer()).mean()), train()
    first = next(iter(found.values()))
    for who, values in found.items():
        assert all(abs(a - b) <= 1e-4 * abs(b) for a, b in zip(values, first)), (name, found)
END
if "$python" -c 'import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ("torch", "jax", "numpy"))))'; then
	check "the peers' networks are the same" \
		env OMP_NUM_THREADS=1 JAX_PLATFORMS=cpu CUDA_VISIBLE_DEVICES= "$python" "$dir/same.py"
else
	skipped=1
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
