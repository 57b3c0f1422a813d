#!/bin/sh
# each-module.sh COMMAND...
# Runs a command in this module and in each one nested in it.
set -eu
for mod in go.mod $(find examples bench -name go.mod 2>/dev/null); do
	dir=$(dirname "$mod")
	[ "$dir" = . ] || echo "--- $dir"
	(cd "$dir" && "$@")
done
