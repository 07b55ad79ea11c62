#!/usr/bin/env bash
# The programs of the node into CACHE/programs, once a machine: kube-apiserver and etcd are those that tests run on
# (tarsy_dev.apiserver.debian), the others are built from the same source package by the same means, which that module
# explains: packages of Debian are unpacked in a private folder, nothing is installed.
# Unlike there `go build` is called directly: what `make` generates first is only needed by kube-apiserver. One constant
# of the kubelet is changed: containers that hold pods ask for an OOM score below zero, which needs a capability
# (SYS_RESOURCE) that virtual machines for builds often take from root, and which one node for tests does not need.
# Called as: build.sh CACHE   (cluster.sh is who calls it)
set -euo pipefail
cd "$(dirname "$0")/../.."
cache=$1
programs=(kubelet kube-controller-manager kube-scheduler kube-proxy)
[[ ! -e $cache/programs ]] || exit 0

fail() {
    echo "build.sh: $*" >&2
    exit 1
}
server=$(echo "${cache%/*}"/kubernetes/v1.20.*-debian-*/)
[[ -x $server/kube-apiserver ]] ||
    fail "no kube-apiserver of Debian's in the cache: \`make kube-apiserver\` builds it where there is no official one; where" \
        "there is, images can be pulled too, and \`make kind\` does the same job"
version=$("$server/kube-apiserver" --version)
version=${version#* }

work=$(mktemp -d "$cache/.build-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{sources,lists/partial,archives/partial,packages,tools,source,home,programs}
cd "$work/packages"
"$OLDPWD/.venv/bin/python" - "$work/sources" <<'EOF'
import pathlib, sys
from tarsy_dev.apiserver.debian import source_files
for name, text in source_files(pathlib.Path("/etc/apt")).items():
    pathlib.Path(sys.argv[1], name).write_text(text)
EOF
apt() {
    apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/sources" -o Dir::State::lists="$work/lists" \
        -o Dir::Cache="$work" -o APT::Sandbox::User=root -o Acquire::Retries=3 "$@" >>"$work/apt.log" 2>&1 ||
        { tail -n 20 "$work/apt.log" >&2; fail "apt-get failed; its log ends above"; }
}
echo "== kubelet and its like, from Debian's source package (10 minutes on 2 cores, once)"
apt update
apt download golang-1.19-go golang-1.19-src golang-github-modern-go-reflect2-dev patch xz-utils
apt source --download-only kubernetes
for package in *.deb; do dpkg-deb -x "$package" "$work/tools"; done

export PATH=$work/tools/usr/lib/go-1.19/bin:$work/tools/usr/bin:$PATH
export GOROOT=$work/tools/usr/lib/go-1.19 GOPATH=$work/source/.go GO111MODULE=off CGO_ENABLED=0
# What is compiled stays until all is: a build that was interrupted goes on.
export HOME=$work/home TMPDIR=$work/home GOCACHE=$cache/go GOFLAGS=-p=2
cd "$work/source"
tar -xzf ../packages/kubernetes_*.orig.tar.gz --strip-components=1
tar -xJf ../packages/kubernetes_*.debian.tar.xz
while read -r name; do patch -sp1 <"debian/patches/$name"; done <debian/patches/series
rm -r vendor/github.com/modern-go/reflect2
cp -r "$work/tools/usr/share/gocode/src/github.com/modern-go/reflect2" vendor/github.com/modern-go/
sandbox=pkg/kubelet/dockershim/docker_sandbox.go
sed -i 's/defaultSandboxOOMAdj int = -998/defaultSandboxOOMAdj int = 0/' $sandbox
grep -q 'defaultSandboxOOMAdj int = 0' $sandbox || fail "$sandbox is not what it was"
mkdir -p .go/src/k8s.io
ln -s ../../.. .go/src/k8s.io/kubernetes
cd .go/src/k8s.io/kubernetes
vendored=k8s.io/kubernetes/vendor/k8s.io
flags="-s -w"
for package in $vendored/component-base/version $vendored/client-go/pkg/version; do
    flags+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=20"
done
# providerless: without what clouds want.
nice -n 19 go build -trimpath -tags providerless -ldflags "$flags" -o "$work/programs/" "${programs[@]/#/./cmd/}"
cp "$server/kube-apiserver" "$server/etcd" "$work/programs/"
mv "$work/programs" "$cache/programs"
rm -rf "$cache/go"
