#!/bin/sh
# binaries.sh DIR
# Builds the command neap into DIR, as one static file for each system, with their SHA-256 in
# DIR/SHA256SUMS. Two runs on one commit with one Go make the same bytes.
set -eu
[ $# -eq 1 ] || { echo "binaries: name the directory to build into" >&2; exit 2; }
mkdir -p "$1"
into=$(cd "$1" && pwd)
cd "$(dirname "$0")/../cmd/neap"
for system in linux darwin windows; do
	for arch in amd64 arm64; do
		file=neap-$system-$arch
		[ $system != windows ] || file=$file.exe
		CGO_ENABLED=0 GOOS=$system GOARCH=$arch go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$into/$file" .
	done
done
cd "$into"
sha256sum neap-* >SHA256SUMS
