# page.sh - does what a page of the documentation says, in its order: writes its programs, runs its commands, and compares
# what they print with the page. Sourced by tests. Input: $page, a file with indented blocks. One that begins with "$ " is a
# command and its output, "..." in it stands for any text; any other block is the file that the paragraph before it names
# first, `x.c`, or none. $RICCI_BUILD: the build folder. Output: $passed, $failed, $programs, $commands, check; the working
# directory is a new folder.

passed=0 failed=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export CPATH="$PWD/include" LIBRARY_PATH="$RICCI_BUILD" LD_LIBRARY_PATH="$RICCI_BUILD" PATH="$RICCI_BUILD/tools:$PATH"
cd "$tmp" || exit 1

# 1.c, 2.run, 2.want ..: the blocks
awk '
	/^    / {
		line = substr($0, 5)
		if (line ~ /^\$ /) {
			n++
			print substr(line, 3) >(n ".run")
			kind = "want"
			printf "" >(n ".want")
		} else if (kind == "want" && !gap)
			print line >(n ".want")
		else if (name) {
			kind = name
			while (gap-- > 0) print "" >name
			print line >name
		}
		gap = 0
		next
	}
	/^$/ {gap++; next}
	{
		if (kind) kind = name = ""
		gap = 0
		if (!name && match($0, /`[a-z]+\.c`/)) name = substr($0, RSTART + 1, RLENGTH - 2)
	}' "$page"

programs=$(ls ./*.c 2>/dev/null | wc -l) commands=$(ls ./*.run 2>/dev/null | wc -l)
for run in $(ls ./*.run | sort -t/ -k2 -n); do
	want=${run%.run}.want
	sh "$run" >got 2>log
	[ -s got ] || mv log got
	# the lines of the page as patterns for the whole output
	sed 's/[][\\.*^$]/\\&/g; s/\\\.\\\.\\\./.*/g' "$want" >patterns
	lines=$(wc -l <"$want")
	ok=$([ "$(wc -l <got)" = "$lines" ] && echo yes)
	n=0
	while [ "$ok" ] && [ $n -lt "$lines" ]; do
		n=$((n + 1))
		sed -n "${n}p" got | grep -qx -e "$(sed -n "${n}p" patterns)" || ok=
	done
	if [ "$ok" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "$page: $(cat "$run"): printed" >&2
		cat got log >&2 2>/dev/null
	fi
done

check() { # check WHAT CONDITION
	if eval "$2"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "$page: $1" >&2
	fi
}
