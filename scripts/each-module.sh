#!/bin/sh
# each-module.sh COMMAND...
# Runs a command in each of the modules that MODULES names, or else in this module and
# all that are nested in it; in each of them even if it fails in one.
set -u
failed=0
for dir in ${MODULES:-. $(find echo5limit fiber3limit console contrib cmd examples bench -name go.mod -exec dirname {} \;)}; do
	[ "$dir" = . ] || echo "--- $dir"
	(cd "$dir" && "$@") || failed=1
done
exit $failed
