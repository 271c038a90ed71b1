#!/bin/sh
# test_integers.sh - integers near the ends of their types wrap, on every backend. $RICCI_BUILD: the
# build folder. Each expression's values were computed by unbounded integers; where there is python3,
# random ones are judged by it, too (fuzz_integers.py).

passed=0 failed=0 skipped=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
backends="interp tcc"
"$RICCI_BUILD/tools/ricci" run 'Y[i] = i where i<2' --backend cc >/dev/null 2>&1 && backends="$backends cc"

gives() { # gives EXPRESSION VALUES: as `ricci run` prints them
	for backend in $backends; do
		"$RICCI_BUILD/tools/ricci" run "$1" --backend $backend >"$tmp/out" 2>&1
		if [ "$(tail -n +2 "$tmp/out" | tr -s ' \n' ' ' | sed 's/ $//')" = "$2" ]; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
			echo "test_integers.sh: $1 on $backend, instead of $2:" >&2
			cat "$tmp/out" >&2
		fi
	done
}

# the quotient of a sum whose coefficients wrap when they are reduced by the divisor
gives 'Y[i] = i64((5 - i*3)/4611686018427387904) where i<6' '[0 0 -1 -1 -1 -1]'
# a product that wraps beside a maximum: once without end
gives 'Y[i] = i64(i) + max(i64(i)*2, i64(i*4611686018427387904 + 4611686018427387904)*3) where i<3' \
	'[0 3 4611686018427387906]'
# a comparison that a compiler decides wrongly when it takes the product for unwrapped
gives 'P[i] = i64(i)*4611686018427387904 where i<4; Y[i] = (i64(i)+i64(i))/16 <= P[i]*i64(i) - 1000 ? 1 : 0 where i<4' \
	'[0 1 0 1]'
gives 'P[i] = i32(i)*65536 where i<4; Y[i] = P[i]*P[i] + P[i] where i<4' '[0 65536 131072 196608]'
gives 'P[i] = i32(i) + 2147483645 where i<4; Y[i] = P[i] + 1 > P[i] ? P[i] + 1 : 0 where i<4' '[2147483646 2147483647 0 -2147483647]'
gives 'P[i] = i64(i) + 9223372036854775805 where i<4; Y[i] = P[i] + 1 > P[i] ? i : -1 where i<4' '[0 1 -1 3]'
gives 'P[i] = i8(i*100) where i<4; Y[i] = P[i]*P[i] + P[i] where i<4' '[0 116 -128 -128]'
gives 'P[i] = i64(i)*4611686018427387904 where i<3; Y[i] = abs(P[i]*2)/3 where i<3' '[0 -3074457345618258603 0]'
# sums and products
gives 'Y[i] += i64(j)*4611686018427387904 + i64(i) where i<2, j<4' '[-9223372036854775808 -9223372036854775804]'
gives 'Y[i] *= i32(j)*65536 + i32(i) where i<2, j in 1..4' '[0 393217]'

if command -v python3 >/dev/null; then
	if python3 tests/tools/fuzz_integers.py --tool "$RICCI_BUILD/tools/ricci" --count 40 >"$tmp/out" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		cat "$tmp/out" >&2
	fi
else
	skipped=1
	echo "test_integers.sh: skipped: no python3" >&2
fi
echo "$passed passed, $failed failed$([ $skipped = 0 ] || echo ", $skipped skipped")"
[ $failed = 0 ]
