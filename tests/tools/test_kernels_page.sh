#!/bin/sh
# test_kernels_page.sh - the stages that docs/kernels.md shows are printed as it says.

page=$PWD/docs/kernels.md
. tests/tools/page.sh
check "the page has 2 commands, not $commands" '[ "$commands" = 2 ]'
echo "$passed passed, $failed failed"
[ $failed = 0 ]
