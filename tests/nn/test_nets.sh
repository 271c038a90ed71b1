#!/bin/sh
# test_nets.sh - each example as its users meet it, in small: gradients equal finite differences; stopped by ctrl-C, by
# SIGTERM and by kill -9, and resumed each time, it ends in the very file of a run that never stopped; a full disk leaves
# the checkpoint whole (skipped where this user may not mount a small one); wrong usage is status 2 and says what would be
# right. Then options of a training, each in a net.
# $RICCI_BUILD: the build folder.

passed=0 failed=0 skipped=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

check() { # check WHAT COMMAND...
	what=$1
	shift
	if "$@" >log 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "test_nets.sh: $name: $what" >&2
		sed 's/^/	/' log >&2
	fi
}
net() { "$RICCI_BUILD/examples/$name" $small "$@"; }
run() { net --static --backend tcc --threads 1 --seed 3 "$@"; }
wrong() { # wrong TEXT OPTIONS...: status 2, that text on stderr, nothing on stdout
	text=$1
	shift
	net "$@" >out 2>err
	[ $? = 2 ] && [ ! -s out ] && grep -qF -e "$text" err
}
fails() { # fails TEXT OPTIONS...: status 1, and that text
	text=$1
	shift
	run "$@" >out 2>err
	[ $? = 1 ] && grep -qF -e "$text" err
}
started() { # the session is made and training begins: the file has its head
	for _ in $(seq 300); do
		[ -s steps.csv ] && sleep 0.2 && return
		sleep 0.05
	done
	echo 'no training within 15 s'
	return 1
}
# In the background, the process itself and no shell around it, so that signals meet it; --foreground, or timeout sends
# each signal twice, and the second one ends the program at once. $1: options.
endless() {
	rm -f steps.csv
	timeout --foreground 60 "$RICCI_BUILD/examples/$name" $small --static --backend tcc --threads 1 --seed 3 --epochs 1000 \
		--csv steps.csv $1 >out 2>err &
	endless=$!
	started
}
stopped() { # stopped SIGNAL STATUS OPTIONS: a training without end, which saves stopped.h5 after step $at
	endless "--checkpoint stopped.h5 $3"
	kill -"$1" $endless
	wait $endless
	is=$?
	cat err
	at=$(sed -n "s/^$name: stopped after step \([0-9]*\)$/\1/p" err)
	[ $is = "$2" ] && [ "$at" ]
}
killed() { # kill -9 of one that saves after each step: the file is whole; rows of its steps are in steps.csv
	endless '--resume stopped.h5 --checkpoint stopped.h5 --checkpoint-every 1'
	kill -KILL "$(ps -o pid= --ppid $endless)"
	wait $endless
	at=$(awk -F, -v at="$at" '$1 == "step" {at = $3} END {print at}' steps.csv)
	run --eval --resume stopped.h5
}
same() { # the same bytes; else how many differ, and which of the two another run agrees with
	cmp "$1" "$2" && return
	cmp -l "$1" "$2" | wc -l
	run --steps "$3" --checkpoint again.h5 --overwrite
	cmp again.h5 "$1"
	cmp again.h5 "$2"
	return 1
}
continued() { # resumed for two more steps it is the run that never stopped
	more=$((at + 2))
	run --steps $more --resume stopped.h5 --checkpoint stopped.h5 &&
		run --steps $more --checkpoint whole.h5 --overwrite && same stopped.h5 whole.h5 $more
}
begun() { # the initial checkpoint, continued, is the run without it; it holds the same net
	run --steps 0 --checkpoint first.h5 --overwrite && run --steps 2 --resume first.h5 --checkpoint first.h5 &&
		run --steps 2 --checkpoint second.h5 --overwrite && same first.h5 second.h5 2 &&
		"$RICCI_BUILD/tools/ricci" export first.h5.prev -o initial/net.c &&
		"$RICCI_BUILD/tools/ricci" export first.h5 -o trained/net.c && cmp initial/net.h trained/net.h
}
full() ( # the file before stays
	cp whole.h5 before.h5
	ulimit -f 8
	fails 'cannot write whole.h5: File too large' --steps $((more + 1)) --resume whole.h5 --checkpoint whole.h5 &&
		cmp whole.h5 before.h5
)
# The same on a file system that has no room for a second file; in a namespace, where anyone may mount one.
mounts() { unshare -rm mount -t tmpfs none disk; }
full_system() {
	options="--static --backend tcc --threads 1 --seed 3 --steps $((more + 1)) --resume disk/whole.h5 --checkpoint disk/whole.h5"
	unshare -rm sh -ec '
		mount -t tmpfs -o size=$(($(wc -c <whole.h5) * 3 / 2048 + 4))k none disk
		cp whole.h5 disk
		status=0
		"$@" >/dev/null 2>err || status=$?
		cat err
		[ $status = 1 ]
		grep -q "cannot write disk/whole.h5: No space left on device" err
		cmp whole.h5 disk/whole.h5
		[ "$(ls disk)" = whole.h5 ]' sh "$RICCI_BUILD/examples/$name" $small $options
}

mkdir initial trained disk
seq 100000 >text.txt # so long that no epoch ends
# name: options of a small net
while IFS=: read -r name small; do
	check 'gradients' net --check-gradients --backend tcc
	rm -f stopped.h5
	check 'ctrl-C' stopped INT 130
	check 'resumed, then SIGTERM' stopped TERM 143 '--resume stopped.h5'
	check 'resumed, then kill -9' killed
	check 'resumed, as one that never stopped' continued
	check 'a file that may not grow' full
	if mounts; then check 'a full disk' full_system; else skipped=$((skipped + 1)) && echo 'skipped: a full disk: this user may not mount one' >&2; fi
	check 'the initial checkpoint' begun
	check 'help' sh -c "'$RICCI_BUILD/examples/$name' --help | grep -q '^usage: $name'"
	check 'no such option' wrong '--nope: there is no such option' --nope
	check 'a wrong number' wrong '--batch 1.5: this takes a whole number, at least 1' --batch 1.5
	check 'a wrong name' wrong '--precision f8: this takes one of: f32 bf16 f64 f16' --precision f8
	check 'a missing value' wrong '--lr: the value is missing' --lr
	check 'another word' wrong 'what is more?' more
	check 'no data' fails "$tmp/none" --data "$tmp/none"
	check 'no checkpoint' fails 'none.h5' --resume none.h5
	check 'a checkpoint that is there' fails 'whole.h5 exists' --steps 1 --checkpoint whole.h5
done <<'END'
capsnet:--capsules 2 --batch 2
lstm:--hidden 8 --batch 2
resnet:--width 4 --batch 2
mobilenet_v2:--width 0.1 --batch 2
shufflenet:--width 36 --batch 2
mi_lstm:--data text.txt --hidden 6 --length 5 --batch 2
scrn:--data text.txt --hidden 6 --context 4 --length 5 --batch 2
sublstm:--data text.txt --hidden 6 --length 5 --batch 2
lltm:--data text.txt --hidden 6 --length 5 --batch 2
gpt:--data text.txt --layers 1 --width 8 --heads 2 --length 5 --batch 2
bert:--data text.txt --layers 1 --width 8 --heads 2 --length 5 --batch 2
END

# ---- options that change what is computed or printed

prints() { # prints PATTERN OPTIONS...: a line like that
	pattern=$1
	shift
	run "$@" >out && cat out && grep -qE -e "$pattern" out
}
peaked() { # the rate of one-cycle rises and falls
	run --steps 6 --schedule one-cycle --csv rates.csv && cat rates.csv &&
		awk -F, '$1 == "step" {rate[++n] = $7} END {exit !(n == 6 && rate[1] < rate[2] && rate[6] < rate[2])}' rates.csv
}
augmented() { # another loss than of the samples as they are
	run --steps 1 >plain && prints '^epoch 1 loss' --steps 1 --augment && ! cmp plain out
}
name=lstm small='--hidden 8 --batch 2'
check '--profile' prints '^ *share +ms  layer$' --steps 2 --profile
check '--bench' prints '^{"name": "lstm", "batch": 2, "step_ms": ' --bench --seconds 0.1
check '--trace' sh -c "'$RICCI_BUILD/examples/lstm' $small --steps 2 --trace t.json && tail -n 1 t.json | grep -q '^]$' && grep -q 'a training step' t.json"
check '--trace into no folder' fails "none/t.json can't be written: No such file" --steps 2 --trace none/t.json
check '--bench --profile' prints '^a step takes .* ms' --bench --seconds 0.01 --profile
check 'bf16' prints '^epoch 1 loss [0-9.]+ ' --precision bf16 --steps 2
check 'f16' prints '^epoch 1 loss [0-9.]+ ' --precision f16 --steps 2
check 'f64' prints '^epoch 1 loss [0-9.]+ ' --precision f64 --steps 2
check 'one-cycle' peaked
check 'averages' prints '^epoch 1 loss [0-9.]+ ' --average 0.9 --steps 2 --checkpoint average.h5
check 'averages, evaluated' prints '^test_error' --average 0.9 --eval --resume average.h5
name=resnet small='--width 4 --batch 2'
check '--augment' augmented
small='--depth 50 --width 8'
check '50 layers' prints '^epoch 1 loss [0-9.]+ ' --batch 2 --steps 1
check '50 layers, --bench' prints '^{"name": "resnet50", "batch": 1, ' --bench --seconds 0.01
name=bert small='--data text.txt --base --layers 1 --length 8 --batch 4'
check 'a layer of --base' prints '^epoch 1 loss [0-9.]+ ' --steps 1

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
