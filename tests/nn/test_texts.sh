#!/bin/sh
# test_texts.sh - the models of texts: they learn, gpt writes what its memory allows and more, operators are trained.
# $RICCI_BUILD: the build folder.

passed=0 failed=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
examples=$RICCI_BUILD/examples
small="--layers 1 --width 16 --heads 2 --length 8 --batch 8 --static --backend tcc --threads 1"

check() { # check WHAT CONDITION
	if eval "$2"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "test_texts.sh: $1" >&2
	fi
}
gpt() { "$examples/gpt" $small "$@"; }

i=0
while [ $i -lt 200 ]; do
	printf 'abcdefgh' # after each character the next one is certain
	i=$((i + 1))
done >letters.txt
check 'it learns a text and writes on' \
	'gpt --data letters.txt --lr 0.02 --steps 150 --checkpoint w.h5 --generate 12 --prompt cd --temperature 0 >out &&
	[ "$(tail -n 1 out)" = cdefghabcdefgh ]'
check 'bits per character' 'head -n 1 out | grep -qE "train_bits [0-9.]+"'
check 'more than its memory, from the checkpoint' \
	'[ "$(gpt --data letters.txt --resume w.h5 --generate 39 --prompt a --temperature 0)" = "$(cut -c 1-40 letters.txt)" ]'
check 'f64' \
	'gpt --data letters.txt --precision f64 --lr 0.02 --steps 150 --checkpoint w64.h5 --generate 12 --prompt cd --temperature 0 |
	tail -n 1 | grep -qx cdefghabcdefgh'
check 'a prompt of other characters' 'gpt --data letters.txt --resume w.h5 --generate 3 --prompt ax 2>&1 |
	grep -q "^gpt: byte 1 of the text begins no character of the data set.s alphabet"'
check 'no weights' 'gpt --generate 3 2>&1 | grep -q "^gpt: --generate: this needs --checkpoint"'
gpt --generate 3 >/dev/null 2>&1
check 'wrong usage' "[ $? = 2 ]"
check 'too many layers' 'gpt --layers 65 2>&1 | grep -q "^gpt: --layers: at most 64"'

"$examples/operators" --steps 2 --backend tcc >out
check 'operators learn' "[ $? = 0 ]"
check 'all of them' '[ $(wc -l <out) -gt 73 ]'
check 'no such operator' '"$examples/operators" --only nope 2>&1 | grep -q "^operators: --only nope: no operator"'
echo "$passed passed, $failed failed"
[ $failed = 0 ]
