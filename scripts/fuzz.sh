#!/bin/sh
# fuzz.sh DURATION
# Runs every fuzz test of the module for that long, one after the other, and all of
# them even if one fails.
set -eu
failed=0
for package in $(go list ./...); do
	for name in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "--- $package $name"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$1" "$package" || failed=1
	done
done
exit $failed
