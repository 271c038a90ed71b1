# checks.sh - for the tests beside it: counts checks.
passed=0 failed=0
check() { # check WHAT COMMAND...
	what=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "$(basename "$0"): $what" >&2
	fi
}
