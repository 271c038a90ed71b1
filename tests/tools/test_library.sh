#!/bin/sh
# test_library.sh - what is installed, as users get it: only ricci_* is visible, the shared library can be
# loaded anywhere, pkg-config's flags work both ways, from C and C++, and uninstall leaves nothing.
# $RICCI_BUILD: the build folder; $CC: its compiler.

passed=0 failed=0 skipped=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
source=$PWD

check() { # check WHAT COMMAND...
	what=$1
	shift
	if "$@" >"$tmp/log" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "test_library.sh: $what" >&2
		sed 's/^/	/' "$tmp/log" >&2
	fi
}
skip() {
	skipped=$((skipped + 1))
	echo "test_library.sh: skipped: $1" >&2
}
empty() { # the command's output must be empty
	"$@" >"$tmp/empty" 2>&1
	cat "$tmp/empty"
	[ ! -s "$tmp/empty" ]
}

exports() { nm -D --defined-only "$RICCI_BUILD/libricci.so" | awk '{print $3}' | grep -v '^ricci_'; }
globals() { nm -g --defined-only "$RICCI_BUILD/libricci.a" | awk 'NF == 3 {print $3}' | grep -v '^ricci_'; }
relocations() { readelf -d "$RICCI_BUILD/libricci.so" | grep TEXTREL; }
soname() { readelf -d "$RICCI_BUILD/libricci.so" | grep -q 'SONAME.*\[libricci\.so\.0\]'; }
declared() { # what the headers declare and the library lacks
	sed -n 's/^RICCI_API .*[ *]\(ricci_[a-z0-9_]*\)(.*/\1/p' "$source"/include/*.h "$source"/include/*/*.h | sort >"$tmp/declared"
	nm -D --defined-only "$RICCI_BUILD/libricci.so" | awk '{print $3}' | sort >"$tmp/defined"
	comm -23 "$tmp/declared" "$tmp/defined"
}

check "libricci.so exports other names than ricci_*" empty exports
check "libricci.a has other global names than ricci_*" empty globals
check "libricci.so has text relocations" empty relocations
check "libricci.so's SONAME is not libricci.so.0" soname
check "the headers declare what libricci.so lacks" empty declared

# ---- installing to a folder and using it from there

check "make install" make -C "$RICCI_BUILD" install DESTDIR="$tmp/root"
pc=$(find "$tmp/root" -name ricci.pc)
lib=$(dirname "$(dirname "$pc")")
include=$(dirname "$(find "$tmp/root" -name ricci.h)")
cat >"$tmp/user.c" <<'END'
#include <ricci_nn.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
	int64_t shape[] = {2, 3};
	float x[] = {1, 2, 3, 4, 5, 6}, y[2] = {0, 0};
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *a = ricci_input(g, "X", RICCI_F32, 2, shape);
	ricci_tensor *s = ricci_op(g, "Y[i] += X[i,j]", a);
	ricci_options o;
	memset(&o, 0, sizeof o);
	o.size = sizeof o;
	o.backend = RICCI_BACKEND_TCC;
	o.threads = 1;
	ricci_session *run = ricci_session_new(g, &o, 0, 1, &s);
	if (!run) {
		puts(ricci_error_message());
		return 1;
	}
	if (ricci_feed(run, a, x, sizeof x) || ricci_step(run) || ricci_fetch(run, s, y, sizeof y))
		puts(ricci_error_message());
	ricci_session_free(run);
	ricci_graph_free(g);
	printf("%g %g\n", y[0], y[1]);
	return y[0] != 6 || y[1] != 15;
}
END
cp "$tmp/user.c" "$tmp/user.cc"
try() { # try COMPILER SOURCE FLAGS...
	"$@" -o "$tmp/user" && RICCI_CACHE="$tmp/cache" LD_LIBRARY_PATH="$lib" "$tmp/user"
}
private=$(sed -n 's/^Libs.private: //p' "$pc")
check "a program with libricci.so, of strict C99" try ${CC:-cc} -std=c99 -pedantic -Wall -Wextra -Werror "$tmp/user.c" -I"$include" -L"$lib" -lricci
check "a program with libricci.a" try ${CC:-cc} "$tmp/user.c" -I"$include" "$lib/libricci.a" $private
if command -v pkg-config >/dev/null; then
	flags=$(PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$tmp/root pkg-config --cflags --libs ricci)
	check "a program with pkg-config's flags" try ${CC:-cc} "$tmp/user.c" $flags
else
	skip "no pkg-config"
fi
if command -v c++ >/dev/null; then
	check "ricci.h and ricci_nn.h in C++" try c++ -Wall -Wextra -Werror "$tmp/user.cc" -I"$include" -L"$lib" -lricci
else
	skip "no C++ compiler"
fi
check "the installed program ricci" "$(find "$tmp/root" -name ricci -type f)" --version
check "make uninstall" make -C "$RICCI_BUILD" uninstall DESTDIR="$tmp/root"
check "uninstall leaves files" empty find "$tmp/root" ! -type d

if [ $skipped = 0 ]; then
	echo "$passed passed, $failed failed"
else
	echo "$passed passed, $failed failed, $skipped skipped"
fi
[ $failed = 0 ]
