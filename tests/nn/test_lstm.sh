#!/bin/sh
# test_lstm.sh - the example of a loop over time: it learns to read digits, statically to the same figures whatever
# the threads, and says what it doesn't understand. $RICCI_BUILD: the build folder.

passed=0 failed=0
lstm="$RICCI_BUILD/examples/lstm --batch 32 --hidden 32 --epochs 2"
check() { # check WHAT CONDITION
	if eval "$2"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "test_lstm.sh: $1" >&2
	fi
}
figures() { sed 's/ images.*//'; }

check 'two epochs' 'one=$($lstm --static --threads 1 2>&1 | figures)'
check 'their form' '[ "$(echo "$one" | grep -cEx "epoch [12] loss [0-9.]+ train_error [0-9.]+% test_error [0-9.]+%")" = 2 ]'
check 'it learns' 'echo "$one" | awk "END { exit !(\$8 + 0 < 15) }"'
check 'the same with two threads' '[ "$one" = "$($lstm --static --threads 2 2>&1 | figures)" ]'
check 'wrong usage' '! $lstm --epoch 3 >/dev/null 2>&1'
check 'no number' '$lstm --lr 1x 2>&1 | grep -q "^lstm: --lr 1x"'
check 'help' '$lstm --help | grep -q "^usage: lstm"'
echo "$passed passed, $failed failed"
[ $failed = 0 ]
