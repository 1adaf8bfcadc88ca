#!/bin/sh
# Builds both images with buildah by deploy/image.sh, from what a fresh clone has, and looks at what came out: names, user, entrypoints,
# size, list of parts, that nothing needs more than the kernel, that it starts as existing manifests start it, and that the program in it
# is, byte for byte, the one that this build tree made.
#
# There may be no registry: the base image is made from Debian's archive. Needs root (chroot isolation) and buildah.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
ballast=$(realpath "${BALLAST:?the program of this build tree}")
skip() { # a failure where IMAGE_REQUIRED is set
	[ -z "${IMAGE_REQUIRED:-}" ] || fail "$*"
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
mountpoint -q / || skip "this is a chroot without a file system of its own, in which buildah can't unpack layers"

work=$(mktemp -d)
trap 'buildah rm --all >/dev/null 2>&1 || true; buildah umount --all >/dev/null 2>&1 || true
	chattr -R -i "$work" 2>/dev/null || true; umount "$work/graph/overlay" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

# ---- the scripts themselves ----

usage() { # status text command...
	wanted=$1 text=$2 status=0
	shift 2
	"$@" >"$work/out" 2>&1 || status=$?
	[ "$status" = "$wanted" ] && grep -q -e "$text" "$work/out" || fail "$*: status $status: $(head -n 3 "$work/out")"
}
image=$root/deploy/image.sh
usage 0 'usage: deploy/image.sh' sh "$image" --help
usage 2 'unknown argument "--bogus"' sh "$image" --bogus
usage 2 'needs amd64 or arm64' sh "$image" --arch
usage 2 'needs amd64 or arm64' sh "$image" --arch sparc
usage 2 'needs docker, podman or buildah' sh "$image" --engine make
usage 0 'usage: deploy/image-tree.sh' sh "$root/deploy/image-tree.sh" --help
usage 2 'usage: deploy/image-tree.sh' sh "$root/deploy/image-tree.sh"
usage 0 'usage: deploy/sbom.sh' sh "$root/deploy/sbom.sh" --help
usage 2 'usage: deploy/sbom.sh' sh "$root/deploy/sbom.sh"
usage 2 "don't know how to build for sparc" sh "$root/deploy/image-tree.sh" "$work/none" sparc
mkdir "$work/engines"
for program in sh sed dirname uname; do
	ln -s "$(command -v "$program")" "$work/engines/"
done
usage 1 'none of docker, podman and buildah is installed' env PATH="$work/engines" "$(command -v sh)" "$image"
# A client whose daemon is away isn't an engine.
printf '#!/bin/sh\nexit 1\n' >"$work/engines/docker"
chmod +x "$work/engines/docker"
usage 1 '"info" fails for: docker' env PATH="$work/engines" "$(command -v sh)" "$image"

# ---- a Debian base ----

# Copies of layers cost much; a file system that can't do without is rare.
cat >"$work/storage.conf" <<-CONF
	[storage]
	driver = "overlay"
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
if ! buildah info >/dev/null 2>&1; then
	sed -i 's/"overlay"/"vfs"/' "$work/storage.conf"
	rm -rf "$work/graph" "$work/run"
fi

echo "== a Debian base"
# From where this machine gets its packages.
mirror=$(apt-get --print-uris update 2>/dev/null | sed -n "s|^'\(.*\)/dists/bookworm/InRelease'.*|\1|p" | head -n 1)
[ -n "$mirror" ] || skip "can't tell which Debian archive this machine uses"
mkdir "$work/base"
mmdebstrap --quiet --variant=minbase bookworm "$work/base/base.tar" "deb [trusted=yes] $mirror bookworm main" >"$work/base.log" 2>&1 || {
	tail -n 20 "$work/base.log"
	fail "mmdebstrap failed"
}
printf 'FROM scratch\nADD base.tar /\n' >"$work/base/Dockerfile"
buildah bud --quiet --signature-policy "$work/policy.json" --tag docker.io/library/debian:bookworm-slim "$work/base" >"$work/base.log" 2>&1 || {
	tail -n 20 "$work/base.log"
	fail "buildah can't make the base image"
}
rm -rf "$work/base"

# ---- building ----

# The sources as a checkout has them, under an umask that is no help, with what people leave lying about.
mkdir "$work/source"
(cd "$root" && find . -path ./.git -prune -o -path './build*' -prune -o -path './vendor/.*' -prune -o -name node_modules -prune -o -type f -print0) |
	(cd "$root" && tar --null --files-from=- -cf -) | tar -xf - -C "$work/source"
chmod -R go= "$work/source"
mkdir -p "$work/source/.git" "$work/source/build" "$work/source/vendor/.src-arm64" "$work/source/tests/npm/node_modules"
for place in .git build vendor/.src-arm64 tests/npm/node_modules .; do
	echo junk >"$work/source/$place/junk.txt"
done
cp "$work/source/.dockerignore" "$work/dockerignore"
# vendor/.cache comes along when there is one: verified sources needn't be fetched again.
[ ! -d "$root/vendor/.cache" ] || {
	mkdir "$work/source/vendor/.cache"
	find "$root/vendor/.cache" -maxdepth 1 -name '*.tar' -exec cp {} "$work/source/vendor/.cache/" \;
	echo '!vendor/.cache' >>"$work/source/.dockerignore"
}
# deploy/image.sh's buildah, without a registry and the machine's policy of signatures.
cat >"$work/engines/buildah" <<-WRAPPER
	#!/bin/sh
	[ "\$1" = build ] || exec $(command -v buildah) "\$@"
	shift
	exec $(command -v buildah) build --signature-policy '$work/policy.json' --pull-never --network host "\$@"
WRAPPER
chmod +x "$work/engines/buildah"

echo "== building"
PATH="$work/engines:$PATH" sh "$work/source/deploy/image.sh" --engine buildah >"$work/build.log" 2>&1 || {
	tail -n 40 "$work/build.log"
	fail "building failed"
}
version=$(sed -n 's/^project(ballast VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
unpack() { # tag folder
	container=$(buildah from --signature-policy "$work/policy.json" --pull-never "$1")
	mkdir -p "$2"
	cp -a "$(buildah mount "$container")/." "$2/"
	buildah umount "$container" >/dev/null
	buildah rm "$container" >/dev/null
}
unpack "ballast-agent:$version" "$work/agent"
unpack "ballast-extender:$version" "$work/extender"

echo "== what is in it"
configuration() {
	buildah inspect --type image "$1" 2>/dev/null | node -e '
		const { created, config: { Entrypoint, User, Labels } } = JSON.parse(require("fs").readFileSync(0)).OCIv1;
		console.log(JSON.stringify(Entrypoint), User, created, Labels["org.opencontainers.image.title"],
			Labels["org.opencontainers.image.version"], Labels["org.opencontainers.image.licenses"]);'
}
rest="65532:65532 1970-01-01T00:00:00Z ballast $version Apache-2.0"
[ "$(configuration "ballast-agent:$version")" = "[\"/usr/bin/autoscaler-agent\"] $rest" ] || fail "agent: $(configuration "ballast-agent:$version")"
[ "$(configuration "ballast-extender:$version")" = "[\"/extender\"] $rest" ] || fail "extender: $(configuration "ballast-extender:$version")"
(cd "$work/agent" && find . ! -type d -printf '%p %M\n' | LC_ALL=C sort) >"$work/files"
diff - "$work/files" <<-FILES || fail "other files than these are in the image"
	./etc/ssl/certs/ca-certificates.crt -rw-r--r--
	./extender lrwxrwxrwx
	./health_probe lrwxrwxrwx
	./usr/bin/autoscaler-agent lrwxrwxrwx
	./usr/bin/ballast -rwxr-xr-x
	./usr/share/doc/ballast/LICENSE -rw-r--r--
	./usr/share/doc/ballast/sbom.spdx.json -rw-r--r--
FILES
diff -r "$work/agent" "$work/extender" || fail "the images differ in more than the entrypoint"
size=$(du -sb --apparent-size "$work/agent" | cut -f1)
echo "$size bytes"
[ "$size" -le $((2560 * 1024)) ] || fail "$size bytes are over 2.5 MiB"
node "$here/sbom.js" "$work/agent" "$root/vendor/vendor.lock" "$(dpkg --print-architecture)"

echo "== it runs, alone, as nobody"
run() { chroot --userspec="${user:-65532:65532}" "$work/agent" "$@"; }
expect() { # status text command...: an empty environment, but for what \$environment says
	wanted=$1 text=$2 status=0
	shift 2
	# shellcheck disable=SC2086 # a list of words
	run /usr/bin/ballast version >/dev/null || fail "it doesn't run"
	env -i ${environment:-} "$(command -v chroot)" --userspec="${user:-65532:65532}" "$work/agent" "$@" >"$work/out" 2>&1 || status=$?
	[ "$status" = "$wanted" ] && grep -q -e "$text" "$work/out" || fail "$*: status $status: $(cat "$work/out")"
}
expect 2 'missing CONFIG_PATH in environment' /usr/bin/autoscaler-agent
# As the agent's manifest has it: its config map, names from the downward API, and here no service account.
mkdir -p "$work/agent/etc/autoscaler-agent-config"
cp "$root/deploy/agent/config.json" "$work/agent/etc/autoscaler-agent-config/"
environment='CONFIG_PATH=/etc/autoscaler-agent-config/config.json K8S_NODE_NAME=node-a K8S_POD_IP=10.0.0.1 KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT=1'
expect 2 'serviceaccount/token: no such file' /usr/bin/autoscaler-agent
expect 2 '' /extender --bogus
# As the operator's manifest has it; uid 1000 there.
user=1000:1000 environment='NAMESPACE=csi KUBE_NODE_NAME=node-a LOG_FORMAT=text KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT=1'
expect 1 'serviceaccount/token: no such file' /extender --namespace=csi --provisioner=csi-baremetal --port=8889 --healthport=9999 \
	--loglevel=debug --certFile= --privateKeyFile= --metrics-address=127.0.0.1:0 --metrics-path=/metrics --usenodeannotation=false \
	--isPatchingEnabled=true --nodeselector=a=b
expect 2 '' /health_probe -addr=127.0.0.1:1
expect 1 '' /health_probe -bogus

echo "== another place, user's umask, time zone and language give the same bytes"
# This tree's program came from another folder, perhaps by a compiler cache, and with tests around it.
(
	umask 077
	cd "$work"
	LC_ALL=C.UTF-8 TZ=Asia/Kathmandu sh "$root/deploy/image-tree.sh" --program "$ballast" again
)
cmp "$work/agent/usr/bin/ballast" "$work/again/usr/bin/ballast" || fail "two builds gave different programs"
# The base may have older or newer certificates than this machine has; of the same version they are the same, whatever the machine trusts
# besides.
for tree in agent again; do
	sbom=$work/$tree/usr/share/doc/ballast/sbom.spdx.json
	grep -v -e '"ca-certificates"' -e documentNamespace "$sbom" >"$work/$tree.sbom"
	grep -o '"ca-certificates","versionInfo":"[^"]*"' "$sbom" >"$work/$tree.certificates"
done
cmp "$work/agent.sbom" "$work/again.sbom" || fail "two builds are said to be made of different things"
if cmp -s "$work/agent.certificates" "$work/again.certificates"; then
	diff -r "$work/agent/usr" "$work/again/usr" || fail "two builds differ"
	cmp "$work/agent/etc/ssl/certs/ca-certificates.crt" "$work/again/etc/ssl/certs/ca-certificates.crt" ||
		fail "the image trusts what this machine trusts"
fi
(cd "$work/again" && find . ! -type d -printf '%p %M\n' | LC_ALL=C sort) | diff "$work/files" - || fail "modes depend on the umask"
[ -z "$(find "$work/again" -newermt '1970-01-02')" ] || fail "times of the build are in it"
[ -z "$(find "$work/again" -type d ! -perm 755)" ] || fail "folders depend on the umask"

echo "== for another architecture it is built on this one"
machine=$(dpkg --print-architecture)
other=arm64
[ "$machine" = amd64 ] || other=amd64
sed -i -e "s/^RUN sh vendor.*/RUN true/" \
	-e "s/^RUN sh deploy.*/RUN test \$TARGETARCH\$(dpkg --print-architecture) = $other$machine \&\& mkdir \/image \&\& cp LICENSE \/image/" "$work/source/Dockerfile"
PATH="$work/engines:$PATH" sh "$work/source/deploy/image.sh" --engine buildah --arch "$other" agent >"$work/build.log" 2>&1 || {
	tail -n 20 "$work/build.log"
	fail "building for $other failed"
}
[ "$(buildah inspect --type image "ballast-agent:$version-$other" | node -e '
	console.log(JSON.parse(require("fs").readFileSync(0)).OCIv1.architecture)')" = "$other" ] || fail "the image isn't for $other"

echo "== nothing else comes along to a build"
cp "$work/dockerignore" "$work/source/.dockerignore"
printf 'FROM scratch\nCOPY . /\n' >"$work/context"
buildah bud --quiet --signature-policy "$work/policy.json" --tag context --file "$work/context" "$work/source" >/dev/null 2>&1
unpack context "$work/seen"
found=$(find "$work/seen" -name junk.txt)
[ -z "$found" ] || fail "the build context has $found"
[ "$(cd "$work/seen" && LC_ALL=C sh -c 'echo *')" = "CMakeLists.txt LICENSE deploy gen proto src vendor" ] || fail "the build context is: $(ls -a "$work/seen")"
echo "image: all is well"
