#!/bin/sh
# test_valgrind.sh - `ricci run` and `ricci grad` by every backend under valgrind: no error, no block
# lost. $RICCI_BUILD: the build folder. Children that verify kernels end without freeing and are silent.

passed=0 failed=0
if ! command -v valgrind >/dev/null || nm "$RICCI_BUILD/tools/ricci" | grep -q '__asan_init\|__tsan_init'; then
	echo "test_valgrind.sh: skipped: no valgrind, or a build with sanitizers" >&2
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

npy() { # npy NAME SHAPE BYTES: f32 zeros
	printf '\223NUMPY\001\000v\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($2), }" >"$tmp/$1.npy"
	head -c "$3" /dev/zero >>"$tmp/$1.npy"
}
clean() { # clean BACKEND COMMAND...
	backend=$1
	shift
	if valgrind -q --child-silent-after-fork=yes --leak-check=full --errors-for-leak-kinds=definite \
		--show-leak-kinds=definite --error-exitcode=9 "$RICCI_BUILD/tools/ricci" "$@" --backend "$backend" \
		>"$tmp/out" 2>"$tmp/err" && [ ! -s "$tmp/err" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "test_valgrind.sh: ricci $* --backend $backend" >&2
		head -n 40 "$tmp/err" >&2
	fi
}

npy A '20, 30' 2400
npy B '30, 24' 2880
npy X '2, 3, 9, 9' 1944
npy W '4, 3, 3, 3' 432
backends="interp tcc"
for c in cc gcc clang; do
	command -v $c >/dev/null && backends="interp tcc cc" && break
done
for b in $backends; do
	clean $b run 'Y[i,j] += A[i,k]*B[k,j]' A="$tmp/A.npy" B="$tmp/B.npy" -o Y="$tmp/Y.npy"
	clean $b run 'm[i] max= A[i,j]; s[i] += exp(A[i,j]-m[i]); Y[i,j] = exp(A[i,j]-m[i])/s[i] + random(1)' A="$tmp/A.npy"
	clean $b grad 'Y[b,o,p,q] += (X[b,c,2*p+r-1,2*q+s-1] else 0)*W[o,c,r,s] where p<5, q<5' \
		X="$tmp/X.npy" W="$tmp/W.npy" -o X="$tmp/dX.npy" -o W="$tmp/dW.npy"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
