#!/bin/sh
# release-check.sh [VERSION]
# Rehearses a release of the commit that is checked out, as RELEASE.md does it, in a
# clone. It tags and pushes nothing elsewhere. Then it does what users do: it gets each
# module by its version into an app of its own, with no replace, and compiles all its
# packages; and it installs the command.
#
# Go gets the modules of neap from the clone, by git, as it would from GitHub. All others
# come from this machine's module cache, and those that are not there from the Go module proxy.
# VERSION is one that is not tagged, and by default later than any that is.
set -eu
cd "$(dirname "$0")/.."
top=$(pwd)
module=github.com/neap-go/neap
version=${1:-v0.999.0}
nested=$(sed -n 's/^LIBRARY := \. //p' Makefile)

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
clone=$work/neap

# git reads these as it reads its configuration: whoever asks for the repository on
# GitHub, Go for one, gets the clone.
export GIT_CONFIG_COUNT=3
export GIT_CONFIG_KEY_0="url.file://$clone.insteadOf" GIT_CONFIG_VALUE_0=https://$module
export GIT_CONFIG_KEY_1=safe.directory GIT_CONFIG_VALUE_1='*'
export GIT_CONFIG_KEY_2=advice.detachedHead GIT_CONFIG_VALUE_2=false
export GIT_AUTHOR_NAME=neap GIT_AUTHOR_EMAIL=neap@localhost
export GIT_COMMITTER_NAME=neap GIT_COMMITTER_EMAIL=neap@localhost

# A module cache of its own: a version that was only rehearsed must not be in the machine's.
# -trimpath lets Go use again what an earlier rehearsal has compiled.
GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"
export GOPROXY GOMODCACHE="$work/mod" GOBIN="$work/bin" GOWORK=off GOFLAGS='-modcacherw -trimpath' GOPRIVATE=$module
export CGO_ENABLED=0

say() { echo "release: $*"; }

# quietly COMMAND...: what Go says of downloads is shown only when the command fails.
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }; }

[ -z "$(git status --porcelain)" ] || say "what is not committed is not part of the rehearsal"
git clone -q "$top" "$clone"
cd "$clone"
say "$(git log -1 --format='%h %s') as $version"
git checkout -q -b rehearsal

git tag "$version"
for modules in "$(echo "$nested" | sed 's/kratoslimit //')" kratoslimit; do # it requires another nested one
	# shellcheck disable=SC2086 # they are several words
	quietly scripts/release-modules.sh raise "$version" $modules
	git commit -q -a -m "require $version"
	for dir in $modules; do
		git tag "$dir/$version"
		if grep -q '^replace' "$dir/go.mod"; then
			say "$dir/go.mod has a replace"
			exit 1
		fi
	done
done

for dir in . $nested; do
	path=$module
	[ "$dir" = . ] || path=$module/$dir
	mkdir -p "$work/app/$dir"
	(cd "$dir" && go list -f '{{if ne .Name "main"}}{{.ImportPath}}{{end}}' ./...) >"$work/list" 2>"$work/log" ||
		{ cat "$work/log" >&2; exit 1; }
	packages=$(grep -vE '^$|/(internal|examples)(/|$)' "$work/list" || true)
	[ -n "$packages" ] || continue # a command is not imported
	(
		cd "$work/app/$dir"
		{
			echo 'package main'
			for package in $packages; do
				echo "import _ \"$package\""
			done
			echo 'func main() {}'
		} >main.go
		quietly go mod init example.com/app
		quietly go get "$path@$version"
		quietly go mod tidy
		quietly go build -o /dev/null .
		got=$(go list -m -f '{{.Version}}{{with .Replace}} => {{.}}{{end}}' "$path")
		if [ "$got" != "$version" ]; then
			say "an app got $path $got"
			exit 1
		fi
	)
	say "$path@$version: an app compiles $(echo "$packages" | wc -l | tr -d ' ') of its packages"
done

for wanted in "$version" latest; do
	rm -rf "$GOBIN"
	quietly go install $module/cmd/neap@"$wanted"
	"$GOBIN/neap" --help >/dev/null
	got=$(go version -m "$GOBIN/neap" | awk -v module=$module '$1 == "mod" { print $2 "@" $3 } $1 == "dep" && $2 == module { print $2 "@" $3 }' | tr '\n' ' ')
	say "go install $module/cmd/neap@$wanted: $got"
	case $got in
	"$module/cmd/neap@$version $module@$version ") ;;
	*) exit 1 ;;
	esac
done

quietly scripts/release-modules.sh replace
git commit -q -a -m 'replace'
scripts/api-check.sh
say "$version can be released"
