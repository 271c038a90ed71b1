#!/bin/sh
# test_attack.sh - mutated texts end in success or an error (attack.py): no signal, no hang. $RICCI_BUILD:
# the build folder.

if ! command -v python3 >/dev/null; then
	echo "test_attack.sh: skipped: no python3" >&2
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
python3 tests/tools/attack.py --tool "$RICCI_BUILD/tools/ricci" --count 240 >"${TMPDIR:-/tmp}/attack.$$"
status=$?
sed '$d' "${TMPDIR:-/tmp}/attack.$$" >&2
sed -n '$s/.*; //p' "${TMPDIR:-/tmp}/attack.$$"
rm -f "${TMPDIR:-/tmp}/attack.$$"
exit $status
