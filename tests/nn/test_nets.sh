#!/bin/sh
# test_nets.sh - each example as its users meet it, in small: gradients equal finite differences; stopped by ctrl-C or
# SIGTERM it saves, and resumed it ends in the very file of a run that never stopped; kill -9 and a full disk leave the
# checkpoint whole; wrong usage is status 2 and says what would be right.
# $RICCI_BUILD: the build folder.

passed=0 failed=0
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
# In the background, the process itself and no shell around it, so that signals meet it. $1: options.
endless() {
	rm -f steps.csv
	timeout 60 "$RICCI_BUILD/examples/$name" $small --static --backend tcc --threads 1 --seed 3 --epochs 1000 \
		--csv steps.csv $1 >out 2>err &
	endless=$!
	started
}
stopped() { # stopped SIGNAL STATUS: a training without end, which saves stopped.h5
	rm -f stopped.h5
	endless '--checkpoint stopped.h5'
	kill -"$1" $endless
	wait $endless
	is=$?
	cat err
	[ $is = "$2" ] && grep -qE "^$name: stopped after step [0-9]+$" err
}
continued() { # resumed for two more steps it is the run that never stopped
	more=$(($(sed 's/.* //' err) + 2))
	run --steps $more --resume stopped.h5 --checkpoint stopped.h5 &&
		run --steps $more --checkpoint whole.h5 --overwrite && cmp stopped.h5 whole.h5
}
begun() { # the initial checkpoint, continued, is the run without it
	run --steps 0 --checkpoint first.h5 --overwrite && run --steps 2 --resume first.h5 --checkpoint first.h5 &&
		run --steps 2 --checkpoint second.h5 --overwrite && cmp first.h5 second.h5
}
killed() { # kill -9 leaves a whole file: the one it resumed from, or that of an epoch since
	cp whole.h5 before.h5
	endless '--resume whole.h5 --checkpoint whole.h5'
	kill -KILL "$(ps -o pid= --ppid $endless)"
	wait $endless
	run --eval --resume whole.h5 && cp before.h5 whole.h5
}
full() ( # the file before stays
	cp whole.h5 before.h5
	ulimit -f 8
	fails 'cannot write whole.h5: File too large' --steps $((more + 1)) --resume whole.h5 --checkpoint whole.h5 &&
		cmp whole.h5 before.h5
)

# name: options of a small net
while IFS=: read -r name small; do
	check 'gradients' net --check-gradients --backend tcc
	check 'ctrl-C' stopped INT 130
	check 'and continued' continued
	check 'SIGTERM' stopped TERM 143
	check 'kill -9' killed
	check 'a full disk' full
	check 'the initial checkpoint' begun
	check 'help' sh -c "'$RICCI_BUILD/examples/$name' --help | grep -q '^usage: $name'"
	check 'no such option' wrong '--nope: there is no such option' --nope
	check 'a wrong number' wrong '--batch 1.5: this takes a whole number, at least 1' --batch 1.5
	check 'a wrong name' wrong '--precision f8: this takes one of: f32 bf16 f64' --precision f8
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
mi_lstm:--hidden 6 --length 5 --batch 2
scrn:--hidden 6 --context 4 --length 5 --batch 2
sublstm:--hidden 6 --length 5 --batch 2
lltm:--hidden 6 --length 5 --batch 2
gpt:--layers 1 --width 8 --heads 2 --length 5 --batch 2
bert:--layers 1 --width 8 --heads 2 --length 5 --batch 2
END

echo "$passed passed, $failed failed"
[ $failed = 0 ]
