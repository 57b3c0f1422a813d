#!/bin/sh
# need.sh COMMAND DEBIAN-PACKAGE HOMEBREW-FORMULA
# Installs a command with the system's package manager, unless it is there.
set -eu
command=$1 debian=$2 brew=$3

command -v "$command" >/dev/null && exit 0

give_up() {
	echo "neap: $command is missing; install it: apt-get install $debian, brew install $brew, or your system's own package" >&2
	exit 1
}

root=
if [ "$(id -u)" -ne 0 ]; then
	root=sudo
fi

if command -v apt-get >/dev/null; then
	[ -z "$root" ] || command -v sudo >/dev/null || give_up
	# Images come without package lists; an outdated source must not stop us.
	$root apt-get update -qq || true
	$root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$debian" || give_up
elif command -v brew >/dev/null; then
	brew install "$brew" || give_up
fi
command -v "$command" >/dev/null || give_up
