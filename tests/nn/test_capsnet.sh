#!/bin/sh
# test_capsnet.sh - the example as its users meet it: it learns, a resumed run ends in the very file of one
# that never stopped, ctrl-C saves, wrong usage is status 2, a run that fails is status 1 and says why.
# $RICCI_BUILD: the build folder.

passed=0 failed=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
capsnet=$RICCI_BUILD/examples/capsnet
cd "$tmp" || exit 1

check() { # check WHAT COMMAND...
	what=$1
	shift
	if "$@" >log 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "test_capsnet.sh: $what" >&2
		sed 's/^/	/' log >&2
	fi
}
status() { # status N COMMAND...: with nothing on stdout when it fails
	want=$1
	shift
	"$@" >out 2>err
	is=$?
	cat err
	[ $is = "$want" ] && { [ $is = 0 ] || { [ -s err ] && [ ! -s out ]; }; }
}
refused() {
	wait "$1"
	[ $? = 1 ]
}
says() { # says PATTERN COMMAND...: one line of that form on stdout
	pattern=$1
	shift
	"$@" >out || return
	cat out
	[ "$(grep -cEx "$pattern" out)" = 1 ] && [ "$(wc -l <out)" = 1 ]
}
run() { "$capsnet" --batch 8 --static --backend tcc --seed 3 "$@"; }
number='[0-9]+\.[0-9]'

check 'a run within an epoch' says "epoch 1 loss $number{4} train_error $number{2}% images/s [0-9]+" \
	run --steps 8 --checkpoint whole.h5 --picture loss.svg
check 'the first half' run --steps 3 --checkpoint part.h5
check 'a half is not the whole' sh -c '! cmp -s whole.h5 part.h5'
check 'the second half' run --steps 8 --checkpoint part.h5 --resume part.h5
check 'halves make a whole' cmp whole.h5 part.h5
check 'the picture' grep -q '^<svg .*</svg>\|^<svg ' loss.svg
check 'a longer run' says "epoch 1 loss $number{4} train_error $number{2}% test_error $number{2}% images/s [0-9]+" \
	run --steps 60 --checkpoint long.h5
trained=$(sed 's/.*\(test_error [^ ]*\).*/\1/' out)
check 'the error of the saved weights' says "$trained" run --eval --resume long.h5
check 'it learns' sh -c "echo $trained | tr -d % | awk '{exit !(\$2 < 80)}'"
check 'nothing but the line' [ ! -s err ]

check 'no HDF5 is said before the training' status 1 env RICCI_HDF5=/nowhere/hdf5 "$capsnet" --steps 1 --checkpoint none.h5
check 'and what would help' grep -q "^capsnet: HDF5's library is needed (Debian: libhdf5-103-1): /nowhere/hdf5: " err
check 'a training without checkpoints needs none' env RICCI_HDF5=/nowhere/hdf5 "$capsnet" --batch 8 --static --backend tcc --steps 1

"$capsnet" --batch 8 --backend tcc --checkpoint stopped.h5 >out 2>err &
sleep 3
kill -INT $!
wait $!
check 'ctrl-C ends with its status' [ $? = 130 ]
check 'ctrl-C says where it stopped' grep -q '^capsnet: stopped after step [0-9]*$' err
check 'ctrl-C saves' [ -s stopped.h5 ]

"$capsnet" --batch 8 --backend tcc --checkpoint stopped.h5 >out 2>err &
check 'what is there is not overwritten' refused $!
check 'and that is said' grep -q '^capsnet: stopped.h5 exists: resume from it, or overwrite it' err
"$capsnet" --batch 8 --backend tcc --checkpoint stopped.h5 --overwrite >out 2>err &
sleep 3
kill -TERM $!
wait $!
check 'SIGTERM ends with its status' [ $? = 143 ]
check 'SIGTERM saves' "$capsnet" --batch 8 --backend tcc --eval --resume stopped.h5

check 'help' status 0 "$capsnet" --help
for wrong in '--nope' '--batch 0' '--batch 1.5' '--lr x' '--lr 0' '--backend gcc' '--seed -1' '--steps' 'more'; do
	check "wrong usage: $wrong" status 2 "$capsnet" $wrong
done
check 'fixed schedules are not searched for' status 1 "$capsnet" --static --tune 1 --steps 1
check 'and that is said' grep -q '^capsnet: a static session.s schedules are fixed' err
check 'no data' status 1 "$capsnet" --data "$tmp/none"
check 'no checkpoint' status 1 "$capsnet" --resume none.h5
check 'no folder for the checkpoint' status 1 "$capsnet" --checkpoint none/a.h5
check 'another batch' status 1 "$capsnet" --batch 9 --backend tcc --resume whole.h5
cp whole.h5 before.h5
head -c 100000 whole.h5 >short.h5
check 'a truncated checkpoint' status 1 run --resume short.h5
full() (
	ulimit -f 100
	run --steps 9 --resume whole.h5 --checkpoint whole.h5 >out 2>err
	[ $? = 1 ]
)
check 'a full disk' full
check 'a full disk is told' grep -q '^capsnet: cannot write whole.h5: File too large$' err
check 'the old file is whole' cmp whole.h5 before.h5

echo "$passed passed, $failed failed"
[ $failed = 0 ]
