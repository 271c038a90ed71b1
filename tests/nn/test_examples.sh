#!/bin/sh
# test_examples.sh - the smaller examples run and show what they promise.
# $RICCI_BUILD: the build folder.

passed=0 failed=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

shows() { # shows EXAMPLE AWK-PROGRAM: it ends well, and the program finds what it should in its output
	if "$RICCI_BUILD/examples/$1" >"$tmp/out" 2>&1 && awk "$2" "$tmp/out"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "test_examples.sh: $1" >&2
		sed 's/^/	/' "$tmp/out" >&2
	fi
}

# power iteration settles
shows hessian '{sub(",", "", $4); first = NR == 1 ? $NF : first; last = $NF} END {exit !(NR == 5 && $4 > 0 && last < first / 5)}'
# the penalised network resists the attack, at a similar error
shows penalty '/^penalty 0 / {plain = $7 + 0; clean = $5 + 0} /^penalty 3 / {with = $7 + 0; error = $5 + 0}
	END {exit !(NR == 2 && plain > 50 && with < plain / 2 && error < clean + 5)}'

# those without the options of a training have --help, too, and refuse what they don't know
for example in hessian penalty operators; do
	if "$RICCI_BUILD/examples/$example" --help | grep -q "^usage: $example" &&
		"$RICCI_BUILD/examples/$example" --nope 2>&1 | grep -q "^$example: --nope: there is no such option"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "test_examples.sh: $example: options" >&2
	fi
done

echo "$passed passed, $failed failed"
[ $failed = 0 ]
