#!/bin/sh
# test_written.sh - bench/written.c: nets as somebody writes them train; some that take few seconds to compile.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
export RICCI_CACHE="$dir/cache"
build=${RICCI_BUILD:-.}
. "$(dirname "$0")/checks.sh"

# the loss of the last step is a number, below that of the first one
falls() { awk -F '[][,]' '{ a = $(NF-2); b = $(NF-1) } END { exit !(b + 0 == b && b < a) }' "$dir/out"; }
check "the list" sh -c '"$0" --list | grep -qx gat' "$build/bench/written"
for net in gat vqvae kan experts fno pixelcnn ctc; do
	check "$net ends well" sh -c '"$0" "$@" --static --seconds 0.2' "$build/bench/written" "$net" >"$dir/out"
	check "$net: the loss falls: $(cat "$dir/out")" falls
done
check "no such net" sh -c '! "$0" nothing 2>"$1"' "$build/bench/written" "$dir/err"
echo "$passed passed, $failed failed"
exit $((failed > 0))
