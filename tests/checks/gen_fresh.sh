#!/bin/sh
# gen/ is what protogen makes of proto/ today.
#
#   usage: gen_fresh.sh PROTOGEN
set -eu
cd "$(dirname "$0")/../.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
set -- "$1" --include proto --out "$fresh"
for schema in proto/*.proto; do
	case $schema in proto/options.proto) ;; *) set -- "$@" "$schema" ;; esac # that one is only imported
done
"$@"
if ! diff -r -u gen "$fresh"; then
	echo "gen/ isn't what protogen makes of proto/. Run: cmake --build build --target regen"
	exit 1
fi
