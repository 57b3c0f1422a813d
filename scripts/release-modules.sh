#!/bin/sh
# release-modules.sh raise VERSION MODULE...
# release-modules.sh replace
#
# raise makes nested modules that users import or run ready for their tags: each requires
# VERSION of the modules of neap that it stands on, which must be tagged and pushed, and has
# no replace. `go install …/cmd/neap@latest` refuses a module that has one.
#
# replace undoes the second half in the next commit, so that a checkout builds as a
# whole again. What users see of a nested module is what its tag has.
set -eu
cd "$(dirname "$0")/.."
module=github.com/neap-go/neap
nested=$(sed -n 's/^LIBRARY := \. //p' Makefile)

# required: the modules of neap that the go.mod here requires.
required() { sed -nE "s|^(require)?[[:space:]]*($module[^ ]*) v.*|\\2|p" go.mod; }

case "${1:-} ${2:-}" in
"raise v"*)
	version=$2
	shift 2
	for dir in "$@"; do
		(
			cd "$dir"
			for path in $(required); do
				go mod edit -dropreplace="$path" -require="$path@$version"
			done
			go mod tidy
		)
	done
	;;
"replace ")
	for dir in $nested; do
		(
			cd "$dir"
			for path in $(required); do
				go mod edit -replace="$path=$(echo "$dir" | sed 's|[^/]*|..|g')/${path#"$module"}"
			done
			go mod tidy
		)
	done
	# Other modules that require those have a new version of the main module in their go.mod.
	MODULES= scripts/each-module.sh go mod tidy
	;;
*)
	sed -n '2,3s/^# /usage: /p' "$0" >&2
	exit 2
	;;
esac
