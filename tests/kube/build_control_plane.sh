#!/bin/sh
# Builds kube-apiserver and kube-scheduler 1.20.2 from Debian bookworm's source package into vendor/.cache/kube: about four
# minutes on two cores, needs root for its packages. They are only used by tests/kube.
set -eu
cd "$(dirname "$0")/../.."
out=$PWD/vendor/.cache/kube
work=$PWD/vendor/.cache/kube-build
[ -s "$out/kube-apiserver" ] && [ -s "$out/kube-scheduler" ] && exit 0
version='1.20.5+really1.20.2-1.1+deb12u1'

export DEBIAN_FRONTEND=noninteractive
if ! command -v go >/dev/null || ! [ -d /usr/share/gocode/src/github.com/modern-go/reflect2 ]; then
	[ "$(id -u)" = 0 ] || {
		echo "build_control_plane.sh: needs golang-go and golang-github-modern-go-reflect2-dev; run it as root" >&2
		exit 1
	}
	apt-get -q update >/dev/null
	apt-get -q install -y --no-install-recommends golang-go golang-github-modern-go-reflect2-dev dpkg-dev >/dev/null
fi

mkdir -p "$work" "$out"
# The source package's index, with an apt configuration of its own.
mirror=$(apt-get --print-uris update 2>/dev/null | sed -n "s|^'\(.*\)/dists/bookworm/InRelease'.*|\1|p" | head -n 1)
mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/apt/state"
: >"$work/apt/state/status"
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main" >"$work/apt/sources.list"
cat >"$work/apt/apt.conf" <<CONF
Dir::Etc::SourceList "$work/apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State "$work/apt/state";
Dir::State::Lists "$work/apt/lists";
Dir::State::status "$work/apt/state/status";
Dir::Cache "$work/apt/cache";
APT::Sandbox::User "root";
CONF
cd "$work"
APT_CONFIG=$work/apt/apt.conf apt-get -qq update
[ -d source ] || {
	APT_CONFIG=$work/apt/apt.conf apt-get -qq source --download-only "kubernetes=$version"
	dpkg-source --no-check -x kubernetes_*.dsc source
}

export CGO_ENABLED=0 GO111MODULE=off GOFLAGS= GOPATH="$work/gopath" GOCACHE="$work/gocache"
mkdir -p "$GOPATH/src/k8s.io"
ln -sfn "$work/source" "$GOPATH/src/k8s.io/kubernetes"
cd "$GOPATH/src/k8s.io/kubernetes"
# Newer Go compilers break two of its dependencies: map iteration in reflect2 1.0.1, and a comparison that takes empty strings
# for null. The later upstream forms:
reflect=vendor/github.com/modern-go/reflect2
if [ ! -e $reflect/go_above_118.go ]; then
	rm -f $reflect/*.go $reflect/*.s
	cp /usr/share/gocode/src/github.com/modern-go/reflect2/*.go /usr/share/gocode/src/github.com/modern-go/reflect2/*.s $reflect/
fi
sed -i 's/if data == nil || reflect.DeepEqual(reflect.Zero(reflect.TypeOf(data)), reflect.ValueOf(data)) {/if data == nil {/' \
	vendor/github.com/go-openapi/validate/type.go vendor/k8s.io/kube-openapi/pkg/validation/validate/type.go

openapi=pkg/generated/openapi/zz_generated.openapi.go
if [ ! -s $openapi ]; then
	echo "build_control_plane.sh: generating OpenAPI definitions"
	go build -o "$work/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
	folders=$(grep -rl --include='*.go' '+k8s:openapi-gen=' pkg cmd plugin staging/src vendor 2>/dev/null |
		grep -v -e '_test.go$' -e /testdata/ -e _examples -e sample-apiserver -e kube-openapi/ -e code-generator/ |
		xargs -n1 dirname | sort -u | sed -e 's,^staging/src/,vendor/,' -e 's,^,k8s.io/kubernetes/,' | sort -u | tr '\n' ,)
	"$work/openapi-gen" --logtostderr -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt -O zz_generated.openapi \
		-i "${folders%,}" -p k8s.io/kubernetes/pkg/generated/openapi -r "$work/openapi-violations.txt"
fi
flags="-s -w"
for package in k8s.io/kubernetes/vendor/k8s.io/component-base/version k8s.io/kubernetes/vendor/k8s.io/client-go/pkg/version; do
	flags="$flags -X $package.gitVersion=v1.20.2 -X $package.gitMajor=1 -X $package.gitMinor=20"
done
for program in kube-scheduler kube-apiserver; do
	echo "build_control_plane.sh: building $program"
	go build -trimpath -tags providerless -ldflags "$flags" -o "$out/$program.new" "./cmd/$program"
	mv "$out/$program.new" "$out/$program"
done
chmod -R u+w "$work" && rm -rf "$work"
