#!/bin/sh
# each-module.sh COMMAND...
# Runs a command in each of the modules that MODULES names, or else in this module and
# all that are nested in it; in each of them even if it fails in one. This module comes
# first. Of the others three run at once, or as many as AT_ONCE says, and each shows its
# output when it has ended.
set -u
failed=0
others=
for dir in ${MODULES:-. $(find echo5limit fiber3limit hertzlimit grpclimit kratoslimit console contrib cmd examples bench -name go.mod -exec dirname {} \;)}; do
	case $dir in
	.) "$@" || failed=1 ;;
	*) others="$others $dir" ;;
	esac
done
# shellcheck disable=SC2016 # the inner shell expands it
[ -z "$others" ] || printf '%s\n' $others | xargs -P "${AT_ONCE:-3}" -I @module@ sh -c '
	output=$(cd "$1" && shift && "$@" 2>&1)
	status=$?
	echo "--- $1"
	[ -z "$output" ] || printf "%s\n" "$output"
	[ $status -eq 0 ]' each-module @module@ "$@" || failed=1
exit $failed
