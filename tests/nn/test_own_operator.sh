#!/bin/sh
# test_own_operator.sh - the programs and commands of docs/own-operator.md do what the page says.

page=$PWD/docs/own-operator.md
. tests/tools/page.sh
check "the page has 3 programs, not $programs" '[ "$programs" = 3 ]'
check "the page has 6 commands, not $commands" '[ "$commands" = 6 ]'
check 'the net learns' 'awk "/test_error/ {e = \$8 + 0} END {exit !(e > 0 && e < 12)}" got'
echo "$passed passed, $failed failed"
[ $failed = 0 ]
