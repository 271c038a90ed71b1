#!/bin/sh
# test_kernels_page.sh - the stages that docs/kernels.md shows are printed as it says.

# fusion's decisions are those of a device that is like most, not of one that is being measured beside others
export RICCI_DEVICE=2e10,5e10,3e-6
page=$PWD/docs/kernels.md
. tests/tools/page.sh
check "the page has 2 commands, not $commands" '[ "$commands" = 2 ]'
echo "$passed passed, $failed failed"
[ $failed = 0 ]
