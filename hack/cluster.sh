#!/usr/bin/env bash
# A one-node Kubernetes on a plain Debian 12 machine, for tests that need pods: as root, without a registry.
#   hack/cluster.sh up        bring it up, install TARSy: overlay ha, library, a Postgres
#   hack/cluster.sh status    what runs
#   hack/cluster.sh down      end it; nothing is left but the cache
# Needs: apt-get install docker.io debootstrap dnsmasq-base iptables iproute2 gcc libc6-dev, a kubectl of 1.21 or newer,
# and `make setup`. Kubernetes is built from Debian's source package (1.20, the last but three that starts containers
# with Docker by itself) once a machine, into the cache. Everything runs in namespaces of its own (network, mounts,
# processes): the machine's Docker, iptables and mounts are neither used nor changed. One pair of network interfaces
# leads in: 198.18.0.1 on this side, 198.18.0.2 on the other (RFC 2544 keeps these addresses for tests).
# Settings: TARSY_CLUSTER_STATE (/var/lib/tarsy-cluster), the folder with everything that `down` removes.
set -euo pipefail
cd "$(dirname "$0")/.."

state=${TARSY_CLUSTER_STATE:-/var/lib/tarsy-cluster}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tarsy/cluster
kubeconfig=$state/pki/admin.kubeconfig
address=198.18.0.2

fail() {
    echo "cluster.sh: $*" >&2
    exit 1
}
kube() { kubectl --kubeconfig "$kubeconfig" "$@"; }
is_up() { [[ -s $state/pid ]] && grep -qs cluster/node.sh "/proc/$(<"$state/pid")/cmdline"; }

# until_true SECONDS WHAT COMMAND...
until_true() {
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        is_up || { tail -n 20 "$state/log/node.log" >&2; fail "the node has ended while waiting for $what"; }
        ((SECONDS < end)) || fail "$what is not there in time; see $state/log"
        sleep 0.5
    done
}

check() {
    [[ $(id -u) == 0 ]] || fail "a kubelet needs root"
    for tool in dockerd debootstrap dnsmasq iptables ip gcc kubectl unshare; do
        command -v "$tool" >/dev/null || fail "$tool is needed and not on PATH; the top of this file says what to install"
    done
    [[ -x .venv/bin/python ]] || fail "there is no .venv: run make setup"
    [[ -d /sys/fs/cgroup/memory ]] ||
        fail "Kubernetes 1.20 wants cgroups of version 1: boot with systemd.unified_cgroup_hierarchy=0"
    [[ -z $(ip -o address show to 198.18.0.0/16) ]] || fail "198.18.0.0/16 is in use: is another cluster up?"
}

# Namespaces first, then the way in, then the node: its first process waits until it is told to go on.
start_node() {
    for hierarchy in /sys/fs/cgroup/*/; do mkdir -p "$hierarchy/tarsy-cluster"; done
    mkfifo "$state/go"
    setsid unshare --net --mount --pid --fork --kill-child=SIGKILL --mount-proc --propagation private \
        bash -c 'read -r <"$1/go"; exec hack/cluster/node.sh "$1" "$2"' node "$state" "$cache/programs" \
        >"$state/log/node.log" 2>&1 </dev/null &
    local pid=$!
    echo "$pid" >"$state/pid"
    until_true 30 "a network of its own" [ ! "/proc/$pid/ns/net" -ef /proc/self/ns/net ]
    ip link add tarsy-host type veth peer name tarsy-node netns "$pid"
    ip address add 198.18.0.1/30 dev tarsy-host
    ip link set tarsy-host up
    ip route add 198.18.0.0/16 via "$address"
    echo >"$state/go"
    until_true 600 "the node" [ -e "$state/ready" ]
}

install_tarsy() {
    echo "== TARSy"
    # 1.20 knows neither rules in CRDs nor all of their fields, and refuses them when asked to validate.
    kube apply --validate=false -k crds
    kube wait --for=condition=Established --timeout=60s crd -l app.kubernetes.io/part-of=tarsy
    kube apply --validate=false -f manifests/base/namespace.yaml
    hack/database-secret.sh kubectl --kubeconfig "$kubeconfig"
    install -d -o 999 -g 999 "$state/postgres"
    kube kustomize hack/cluster/product | sed "s|/STATE/|$state/|" | kube apply --validate=false -f -
    kube apply --validate=false -k hack/cluster/library
    kube -n tarsy-system rollout status statefulset/tarsy-postgres --timeout=300s
    kube -n tarsy-system rollout status deployment/tarsy-operator --timeout=300s
    kube -n tarsy-system rollout status deployment/tarsy-worker --timeout=300s
    kube -n tarsy-library rollout status deployment/kubernetes-tools --timeout=300s
}

up() {
    ! is_up || fail "it is up already; down ends it"
    check
    down # what an earlier one left, whose machine was switched off
    mkdir -p "$state"/{log,etc,pki,plugins} "$cache"
    : >"$state/.tarsy-cluster"
    chmod 711 "$state"
    hack/cluster/build.sh "$cache"
    .venv/bin/python hack/cluster/certificates.py "$state/pki" "$address"
    hack/cluster/images.sh "$state" "$cache"
    echo "== node"
    start_node
    install_tarsy
    echo "It is up: export KUBECONFIG=$kubeconfig"
}

status() {
    is_up || { echo "it is not up"; return 1; }
    kube get nodes -o wide
    kube get pods --all-namespaces -o wide
}

# When the first process of the namespaces is gone, the kernel ends all others, and with them what they mounted.
down() {
    [[ ! -e $state || -e $state/.tarsy-cluster ]] || fail "$state is not of a cluster: nothing is removed"
    if is_up; then
        local unshare
        unshare=$(<"$state/pid")
        pkill -TERM --parent "$unshare" || true
        timeout 30 tail --pid="$unshare" -f /dev/null || kill -KILL "$unshare"
    fi
    for _ in $(seq 100); do
        find /sys/fs/cgroup/*/tarsy-cluster -depth -type d -exec rmdir {} + 2>/dev/null || true
        [[ -n $(find /sys/fs/cgroup -maxdepth 2 -name tarsy-cluster) ]] || break
        sleep 0.1 # a process that has been killed is in its group until it is reaped
    done
    rm -rf --one-file-system "$state"
}

case ${1:-} in
up | status | down) "$1" ;;
*) fail "say up, status or down" ;;
esac
