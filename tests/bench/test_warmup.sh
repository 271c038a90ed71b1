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
import json, sys
path = sys.argv[sys.argv.index("--curve") + 1]
if "--peer" in sys.argv:
    if "jax" in sys.argv:
        sys.exit("no jax")
    ends = [1 + k / 10 for k in range(11)] + [3, 4]
else:
    ends = [0.5 + k / 4 for k in range(15)]
with open(path, "w") as f:
    f.write("end_s,step_ms\n" + "".join(f"{b:.4f},{1e3 * (b - a):.4f}\n" for a, b in zip([0] + ends, ends)))

# ---- kernel A runs once a step and gains 4 ms, B ten times and 1 ms each time, C gains nothing, D is swapped after the end
def mark(cat, name, at, detail):
    return {"ph": "i", "name": name, "cat": cat, "ts": 1e6 * at, "args": {"detail": detail}}
if "--trace" in sys.argv:
    events = [{"ph": "M", "pid": 1, "name": "process_name"}]
    for end in ends:
        events.append({"ph": "X", "name": "a training step", "cat": "step", "ts": 1e6 * end})
        events += [{"ph": "X", "name": name, "cat": "kernel", "ts": 1e6 * end} for name in "A" + 10 * "B" + "C"]
    for name, at, gain in ("A", 1, "2000.0 us instead of 6000.0"), ("B", 2, "500.0 us instead of 1500.0"), \
            ("B", 2.5, "500.0 us instead of 500.0"), ("C", 3, "7.0 us instead of 6.0"), ("D", 5, "1.0 us instead of 9000.0"):
        events += [mark("swap", name, at, "cc instead of tcc"), mark("gain", name, at + 0.1, gain)]
    with open(sys.argv[sys.argv.index("--trace") + 1], "w") as f:
        json.dump(events, f)
END
printf '#!/bin/sh\nexec python3 %s "$@"\n' "$dir/curve.py" | tee "$dir/examples/lstm" >"$dir/python"
chmod +x "$dir/examples/lstm" "$dir/python"
check "a run ends well" python3 bench/warmup.py --net lstm --seconds 4 --build "$dir" --peer-python "$dir/python" --peers torch,jax \
	--out "$dir/warmup.svg" >"$dir/out" 2>"$dir/err"
has() { check "no line: $2" grep -qF -- "$2" "$dir/$1"; }
has out "| ricci | 3 | 7 | 0.50 | 250.0 |  |"
has out "| torch | 1 | 11 | 1.00 | 1000.0 | 3.0 |"
has err "jax is left out"
cat >"$dir/look.py" <<'END'
import sys, xml.dom.minidom
chart = xml.dom.minidom.parse(sys.argv[1])
said = ["".join(n.data if n.nodeType == n.TEXT_NODE else n.firstChild.data for n in t.childNodes) for t in chart.getElementsByTagName("text")]
assert len(chart.getElementsByTagName("polyline")) == int(sys.argv[2]), said
assert {"seconds since the process was started", "a step, ms (logarithmic)", "steps", "ricci"} <= set(said), said
marks = [float(e.getAttribute("x1")) for e in chart.getElementsByTagName("line") if e.getAttribute("class") == "swap"]
assert len(marks) == 4 and abs((marks[3] - marks[0]) / (marks[1] - marks[0]) - 2) < 0.01, marks
assert [t for t in said if t[:2] in ("1 ", "2 ", "3 ")] == ["1 at 2.0 s, 10 ms less (10 x 1.5 -> 0.5 ms): B",
                                                            "2 at 1.0 s, 4 ms less (1 x 6 -> 2 ms): A"], said
assert "thin lines: 4 kernels swapped; those that save most of a step:" in said, said
END
check "the chart has curves, units, swaps and the largest gains" python3 "$dir/look.py" "$dir/warmup.svg" 4
check "a run without peers ends well" python3 bench/warmup.py --net lstm --seconds 4 --build "$dir" --peers '' --out "$dir/alone.svg" >"$dir/out"
check "its chart is ours alone" python3 "$dir/look.py" "$dir/alone.svg" 2

# ---- what bench/scale writes
echo '{"stages": ["equations"], "rows": [{"layers": 125, "seconds": [0.02]}, {"layers": 500, "seconds": [0.1]}]}' >"$dir/scale.json"
check "the chart of a net's size is drawn" python3 bench/curve.py "$dir/scale.json" "$dir/scale.svg"
check "it has curves and both axes" python3 -c 'import sys, xml.dom.minidom; t = xml.dom.minidom.parse(sys.argv[1]); \
said = [e.firstChild.data for e in t.getElementsByTagName("text")]; \
assert len(t.getElementsByTagName("polyline")) == 3 and {"125", "500", "layers", "0.01", "0.1", "seconds"} <= set(said), said' "$dir/scale.svg"

# ---- an example's own
check "an example writes a curve" "$build/examples/lstm" --bench --seconds 1 --curve "$dir/lstm.csv"
cat >"$dir/swaps.py" <<'END'
import sys
sys.path.insert(0, "bench")
import warmup
swaps = warmup.read_swaps(sys.argv[1])
sys.exit(not (swaps and all(s.name and s.at > 0 and s.launches > 0 for s in swaps) and any(s.before > 0 and s.after > 0 for s in swaps)))
END
traced() { # longer where the machine has more to do
	for seconds in 2 6 20; do
		rm -rf "$dir/empty"
		RICCI_CACHE="$dir/empty" "$build/examples/lstm" --bench --seconds $seconds --curve "$dir/traced.csv" --trace "$dir/trace.json" || return 1
		python3 "$dir/swaps.py" "$dir/trace.json" && return 0
	done
	return 1
}
check "its trace has swaps and their gains" traced
check "its steps follow each other" python3 -c 'import csv, sys; r = [(float(x["end_s"]), float(x["step_ms"])) for x in csv.DictReader(open(sys.argv[1]))]; \
assert len(r) > 1 and all(b[0] >= a[0] + 0.9e-3 * b[1] - 1e-3 for a, b in zip(r, r[1:])) and r[-1][0] >= 1, r[:5]' "$dir/lstm.csv"
check "a file that can not be written is an error" sh -c '! "$@" 2>/dev/null' sh "$build/examples/lstm" --bench --seconds 1 --curve "$dir/no/curve.csv"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
