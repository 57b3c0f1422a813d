#!/bin/sh
# slow.sh SECONDS COMMAND...
# Runs a command that tests packages, and names at the end those that took longer. They do
# not fail: machines differ.
set -u
most=$1
shift
status=$(mktemp)
trap 'rm -f "$status"' EXIT
{ "$@" 2>&1; echo $? >"$status"; } | awk -v most="$most" '
	{ print; fflush() }
	$1 == "ok" && $3 + 0 > most { slow = slow "\n  " $3 "  " $2 }
	END { if (slow) print "slow: more than " most " s on this machine:" slow }'
exit "$(cat "$status")"
