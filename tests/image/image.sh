#!/bin/sh
# Builds both images from the Dockerfile with buildah, as deploy/image.sh does, twice, and looks at what came out: names, user,
# entrypoints, size, that nothing needs more than the kernel, and that both builds gave the same bytes.
#
# There may be no registry: the base image is made from Debian's archive. Needs root (chroot isolation) and buildah.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
skip() {
	echo "skipped: $*"
	exit 77
}
fail() {
	echo "image: $*" >&2
	exit 1
}

[ "$(id -u)" -eq 0 ] || skip "building an image in chroot isolation needs root"
command -v buildah >/dev/null || skip "buildah isn't installed"
command -v mmdebstrap >/dev/null || skip "mmdebstrap isn't installed"
chroot / true 2>/dev/null || skip "chroot isn't allowed here"

work=$(mktemp -d)
trap 'buildah rm --all >/dev/null 2>&1 || true; chattr -R -i "$work" 2>/dev/null || true; rm -rf "$work"' EXIT INT TERM
cat >"$work/storage.conf" <<-CONF
	[storage]
	driver = "vfs"
	graphroot = "$work/graph"
	runroot = "$work/run"
CONF
cat >"$work/containers.conf" <<-CONF
	[containers]
	default_ulimits = ["nofile=16384:16384", "nproc=8192:8192"]
	netns = "host"
	[engine]
	events_logger = "file"
CONF
printf '{"default":[{"type":"insecureAcceptAnything"}]}' >"$work/policy.json"
export CONTAINERS_STORAGE_CONF="$work/storage.conf" CONTAINERS_CONF="$work/containers.conf" BUILDAH_ISOLATION=chroot
export TMPDIR="$work"

echo "== a Debian base"
# From where this machine gets its packages.
mirror=$(apt-get --print-uris update 2>/dev/null | sed -n "s|^'\(.*\)/dists/bookworm/InRelease'.*|\1|p" | head -n 1)
[ -n "$mirror" ] || skip "can't tell which Debian archive this machine uses"
mmdebstrap --quiet --variant=minbase bookworm "$work/base.tar" "deb [trusted=yes] $mirror bookworm main" >"$work/base.log" 2>&1 || {
	tail -n 20 "$work/base.log"
	fail "mmdebstrap failed"
}
mkdir "$work/base"
cp "$work/base.tar" "$work/base/"
printf 'FROM scratch\nADD base.tar /\n' >"$work/base/Dockerfile"
buildah bud --quiet --signature-policy "$work/policy.json" --tag docker.io/library/debian:bookworm-slim "$work/base" >/dev/null
rm -rf "$work/base" "$work/base.tar"

# The sources as a checkout has them, without what was built here.
mkdir "$work/source"
(cd "$root" && tar -cf - --exclude=./build --exclude='./build-*' --exclude=./vendor/.src --exclude='./vendor/.src-*' \
	--exclude='./vendor/.apt*' --exclude=./vendor/.work --exclude=node_modules --exclude=./.git .) | tar -xf - -C "$work/source"
# vendor/.cache comes along when there is one: verified sources needn't be fetched again.
sed -i '/^vendor\/.cache$/d' "$work/source/.dockerignore"

build() { # target tag
	buildah bud --signature-policy "$work/policy.json" --pull-never --network host --layers --timestamp 0 --target "$1" --tag "$2" \
		"$work/source" >"$work/build.log" 2>&1 || {
		tail -n 40 "$work/build.log"
		fail "building $1 failed"
	}
}

echo "== building"
build agent ballast-agent
build extender ballast-extender
unpack() { # tag folder
	container=$(buildah from --signature-policy "$work/policy.json" --pull-never "$1")
	mkdir -p "$2"
	cp -a "$(buildah mount "$container")/." "$2/"
	buildah umount "$container" >/dev/null
	buildah rm "$container" >/dev/null
}
unpack ballast-agent "$work/agent"
unpack ballast-extender "$work/extender"

echo "== what is in it"
entrypoint() {
	buildah inspect --type image "$1" 2>/dev/null | node -e '
		const { Entrypoint, User } = JSON.parse(require("fs").readFileSync(0)).OCIv1.config;
		console.log(JSON.stringify(Entrypoint), User);'
}
[ "$(entrypoint ballast-agent)" = '["/usr/bin/autoscaler-agent"] 65532:65532' ] || fail "agent: $(entrypoint ballast-agent)"
[ "$(entrypoint ballast-extender)" = '["/extender"] 65532:65532' ] || fail "extender: $(entrypoint ballast-extender)"
(cd "$work/agent" && find . ! -type d | LC_ALL=C sort) >"$work/files"
diff - "$work/files" <<-FILES || fail "other files than these are in the image"
	./etc/ssl/certs/ca-certificates.crt
	./extender
	./health_probe
	./usr/bin/autoscaler-agent
	./usr/bin/ballast
	./usr/share/doc/ballast/LICENSE
	./usr/share/doc/ballast/sbom.spdx.json
FILES
diff -r "$work/agent" "$work/extender" || fail "the images differ in more than the entrypoint"
size=$(du -sb --apparent-size "$work/agent" | cut -f1)
echo "$size bytes"
[ "$size" -le $((2560 * 1024)) ] || fail "$size bytes are over 2.5 MiB"
node -e '
	const sbom = JSON.parse(require("fs").readFileSync(process.argv[1]));
	const names = sbom.packages.map((p) => p.name).sort();
	for (const name of ["ballast", "jsmn", "libyaml", "llhttp", "mbedtls", "musl", "zlib"])
		if (!names.includes(name)) { console.error("the SBOM lacks " + name); process.exit(1); }
' "$work/agent/usr/share/doc/ballast/sbom.spdx.json"

echo "== it runs, alone, as nobody"
run() { chroot --userspec=65532:65532 "$work/agent" "$@"; }
run /usr/bin/ballast version
status=0
run /usr/bin/autoscaler-agent >"$work/out" 2>&1 || status=$?
[ "$status" = 2 ] && grep -q 'missing CONFIG_PATH in environment' "$work/out" || fail "autoscaler-agent: status $status: $(cat "$work/out")"
status=0
run /extender --bogus >"$work/out" 2>&1 || status=$?
[ "$status" = 2 ] || fail "extender --bogus: status $status: $(cat "$work/out")"
status=0
run /health_probe -addr=127.0.0.1:1 >"$work/out" 2>&1 || status=$?
[ "$status" = 2 ] || fail "health_probe without a listener: status $status: $(cat "$work/out")"

echo "== a second build gives the same bytes"
buildah rmi --force ballast-agent ballast-extender >/dev/null
buildah rmi --all --force >/dev/null 2>&1 || true
# With this machine's compiler in place of the image's: the same Debian, the same bytes.
ln -s "$root/vendor/.src" "$work/source/vendor/.src"
sh "$work/source/deploy/image-tree.sh" "$work/again" >"$work/build.log" 2>&1 || {
	tail -n 20 "$work/build.log"
	fail "the second build failed"
}
cmp "$work/agent/usr/bin/ballast" "$work/again/usr/bin/ballast" || fail "two builds gave different programs"
cmp "$work/agent/usr/share/doc/ballast/sbom.spdx.json" "$work/again/usr/share/doc/ballast/sbom.spdx.json"
echo "image: all is well"
