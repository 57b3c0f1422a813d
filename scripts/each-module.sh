#!/bin/sh
# each-module.sh COMMAND...
# Runs a command in this module and in each one nested in it, in all of them even
# if it fails in one.
set -u
failed=0
for mod in go.mod $(find echo5limit fiber3limit console contrib cmd examples bench -name go.mod 2>/dev/null); do
	dir=$(dirname "$mod")
	[ "$dir" = . ] || echo "--- $dir"
	(cd "$dir" && "$@") || failed=1
done
exit $failed
