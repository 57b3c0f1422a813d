#!/bin/sh
# api-check.sh
# Compares the exported API of each released module with its last tag, and fails if a
# change breaks code of users and CHANGELOG.md does not say so. Before v1 it is enough
# to say so: an entry under "Changed" or "Removed" has the word "breaking" and the Go
# name, such as limit.Limiter.Take, or that of its type.
#
# Before the first tag there is nothing to compare with, and nothing is downloaded or
# compiled. apidiff compares two directories, so no module has to be published. gorelease
# would fetch the last version from the module proxy, and would propose version numbers,
# which are ours to choose. Internal packages, examples and commands have no API.
set -eu
cd "$(dirname "$0")/.."
top=$(pwd)
apidiff_version=v0.0.0-20260820142414-ca536658362e
apidiff=$top/.bin/apidiff-$apidiff_version
module=github.com/neap-go/neap

# CI may own the checkout as another user, whom git would not trust.
git() { command git -c safe.directory="$top" -c versionsort.suffix=- "$@"; }

if ! shallow=$(git rev-parse --is-shallow-repository 2>/dev/null); then
	echo "api: this is no git checkout, so there is no tag to compare with"
	exit 0
fi

# last_tag DIRECTORY: the tag of the highest version of the module there. A branch for
# patches must not be compared with a later minor version, so the tag is an ancestor; a
# shallow clone cannot tell.
last_tag() {
	prefix=
	[ "$1" = . ] || prefix=$1/
	merged=--merged=HEAD
	[ "$shallow" = false ] || merged=
	git tag $merged --sort=-version:refname --list "${prefix}v[0-9]*" | sed 1q
}

# breaking VERSION: each entry above the section of that version which says that
# something breaks, on a line of its own.
breaking() {
	awk -v end="## [${1#v}]" '
		function entry() { if (ok && tolower(text) ~ /breaking/) print text; text = "" }
		index($0, end) == 1 { exit }
		/^#/ { entry(); if (/^###? /) ok = /^### (Changed|Removed)/; next }
		/^- / { entry() }
		{ text = text " " $0 }
		END { entry() }
	' CHANGELOG.md
}

# unsaid MODULE ENTRIES: of the changes that apidiff lists on its input, those that no
# entry names.
unsaid() {
	awk -v module="$1" -v entries="$2" '
		BEGIN { while ((getline line < entries) > 0) said[++n] = line }
		function named(name,   i) {
			gsub(/[.]/, "[.]", name)
			for (i = 1; i <= n; i++)
				if (said[i] ~ "(^|[^A-Za-z0-9_])" name "([.]?$|[.]?[^A-Za-z0-9_.])") return 1
			return 0
		}
		{
			name = $0
			sub(/^- /, "", name); sub(/: .*/, "", name); gsub(/[(*)]/, "", name)
			if (sub(/^package /, "", name)) {
				sub("^" module "/", "", name)
				if (!named(name)) print
				next
			}
			if (name !~ /\//) name = module "." name
			sub(/.*\//, "", name); sub(/,.*/, "", name)
			split(name, part, ".")
			if (!named(name) && !named(part[1] "." part[2])) print
		}
	'
}

tags=0 failed=0
for dir in ${MODULES:-$(sed -n 's/^LIBRARY := //p' Makefile)}; do
	case $dir in cmd/*) continue ;; esac # a command has no API
	tag=$(last_tag "$dir")
	[ -n "$tag" ] || continue
	tags=$((tags + 1))
	if [ "$tags" = 1 ]; then
		work=$(mktemp -d)
		trap 'rm -rf "$work"' EXIT
	fi
	others= # modules below the main one, which are not part of it
	if [ "$dir" = . ]; then
		for file in $(git ls-files '*/go.mod'); do
			others="$others :!${file%/go.mod}"
		done
	fi
	if git diff --quiet "$tag" -- "$dir/*.go" ':!*_test.go' $others; then
		echo "api: $dir is as it was at $tag"
		continue
	fi
	if [ ! -x "$apidiff" ]; then
		GOFLAGS= GOBIN=$work/bin go install golang.org/x/exp/cmd/apidiff@$apidiff_version
		mkdir -p .bin
		mv "$work/bin/apidiff" "$apidiff"
	fi
	path=$module
	[ "$dir" = . ] || path=$module/$dir
	mkdir "$work/old"
	git archive "$tag" | tar -x -C "$work/old"
	(
		cd "$work/old/$dir"
		# The tag requires versions of other modules here that this machine may not be able to fetch.
		for required in $(sed -nE "s|^(require)?[[:space:]]*($module[^ ]*) v.*|\\2|p" go.mod); do
			go mod edit -replace="$required=$work/old${required#"$module"}"
		done
		GOFLAGS="${GOFLAGS:-} -mod=mod" "$apidiff" -m -w "$work/old.api" "$path"
	) 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
	(cd "$dir" && "$apidiff" -m -w "$work/new.api" "$path") 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
	"$apidiff" -m -incompatible "$work/old.api" "$work/new.api" >"$work/report" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
	grep '^- ' "$work/report" | grep -vE "^- (\./|package $module/)examples/" >"$work/changes" || true
	version=${tag##*/}
	case $version in
	v0.*) breaking "$version" >"$work/said" ;;
	*) : >"$work/said" ;; # from v1 on, what breaks code takes a module path of its own
	esac
	unsaid "$path" "$work/said" <"$work/changes" >"$work/unsaid"
	if [ -s "$work/unsaid" ]; then
		failed=1
		echo "api: $dir: these changes since $tag break code of users, and CHANGELOG.md does not say so:" >&2
		cat "$work/unsaid" >&2
	else
		echo "api: $dir breaks nothing since $tag that CHANGELOG.md does not name"
	fi
	rm -rf "$work/old"
done

if [ "$tags" = 0 ]; then
	released=$(sed -n 's/^## \[\([0-9][^]]*\)\] - [0-9].*/\1/p' CHANGELOG.md | sed 1q)
	if [ -n "$released" ] && [ "$shallow" = true ]; then
		echo "api: CHANGELOG.md has $released, and this shallow clone has no tags: git fetch --unshallow --tags" >&2
		exit 1
	fi
	echo "api: no version is tagged, so there is nothing to compare with"
fi
if [ "$failed" = 1 ]; then
	echo 'api: keep the old name, or add an entry with the word "breaking" and the Go name under "Changed" or "Removed" (before v1)' >&2
fi
exit $failed
