#!/bin/sh
# each-module.sh [--nested] COMMAND...
# Runs a command in this module and in each one nested in it; with --nested in
# those alone.
set -eu
root=go.mod
if [ "$1" = --nested ]; then
	root=
	shift
fi
for mod in $root $(find examples bench -name go.mod 2>/dev/null); do
	dir=$(dirname "$mod")
	[ "$dir" = . ] || echo "--- $dir"
	(cd "$dir" && "$@")
done
