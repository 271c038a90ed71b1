#!/bin/sh
# test_warmup.sh - bench/warmup.py: its table and chart, with curves that are known; and that an example writes such a curve.
command -v python3 >/dev/null || { echo "0 passed, 0 failed, 1 skipped"; exit 0; }
build=${RICCI_BUILD:-.}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
export RICCI_CACHE="$dir/cache"
. "$(dirname "$0")/checks.sh"

# ---- ours: a step at 0.5 s, then one each 0.25 s; the peer: one at 1 s, then each 0.1 s until 2 s, each second then
mkdir -p "$dir/examples"
cat >"$dir/curve.py" <<'END'
import sys
path = sys.argv[sys.argv.index("--curve") + 1]
if "--peer" in sys.argv:
    if "jax" in sys.argv:
        sys.exit("no jax")
    ends = [1 + k / 10 for k in range(11)] + [3, 4]
else:
    ends = [0.5 + k / 4 for k in range(15)]
with open(path, "w") as f:
    f.write("end_s,step_ms\n" + "".join(f"{b:.4f},{1e3 * (b - a):.4f}\n" for a, b in zip([0] + ends, ends)))
END
printf '#!/bin/sh\nexec python3 %s "$@"\n' "$dir/curve.py" | tee "$dir/examples/lstm" >"$dir/python"
chmod +x "$dir/examples/lstm" "$dir/python"
check "a run ends well" python3 bench/warmup.py --net lstm --seconds 4 --build "$dir" --peer-python "$dir/python" --peers torch,jax \
	--out "$dir/warmup.svg" >"$dir/out" 2>"$dir/err"
has() { check "no line: $2" grep -qF -- "$2" "$dir/$1"; }
has out "| ricci | 3 | 7 | 0.50 | 250.0 |  |"
has out "| torch | 1 | 11 | 1.00 | 1000.0 | 3.0 |"
has err "jax is left out"
check "the chart is well formed" python3 -c 'import sys, xml.dom.minidom; t = xml.dom.minidom.parse(sys.argv[1]); \
assert len(t.getElementsByTagName("polyline")) == 4, len(t.getElementsByTagName("polyline"))' "$dir/warmup.svg"

# ---- an example's own
check "an example writes a curve" "$build/examples/lstm" --bench --seconds 1 --curve "$dir/lstm.csv"
check "its steps follow each other" python3 -c 'import csv, sys; r = [(float(x["end_s"]), float(x["step_ms"])) for x in csv.DictReader(open(sys.argv[1]))]; \
assert len(r) > 1 and all(b[0] >= a[0] + 0.9e-3 * b[1] - 1e-3 for a, b in zip(r, r[1:])) and r[-1][0] >= 1, r[:5]' "$dir/lstm.csv"
check "a file that can not be written is an error" sh -c '! "$@" 2>/dev/null' sh "$build/examples/lstm" --bench --seconds 1 --curve "$dir/no/curve.csv"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
