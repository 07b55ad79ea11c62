#!/usr/bin/env bash
# The node: control plane, Docker engine, kubelet and kube-proxy, in namespaces that hack/cluster.sh makes. It is their
# first process: when it ends, everything in them ends with it, and their mounts, bridges and iptables rules are gone.
# Called as: node.sh STATE PROGRAMS   (cluster.sh is who calls it)
set -euo pipefail
state=$1 programs=$2
log=$state/log pki=$state/pki etc=$state/etc
node=tarsy-cluster address=198.18.0.2 gateway=198.18.0.1
pods=198.18.1.0/24 bridge=198.18.1.1 services=198.18.2.0/24
export DOCKER_HOST=unix://$state/docker.sock

# The kubelet wants settings of the kernel that are the whole machine's; it gets files in their place.
for key in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys \
    kernel/keys/root_maxbytes; do
    mkdir -p "$state/sys/${key%/*}"
    cp "/proc/sys/$key" "$state/sys/$key"
    mount --bind "$state/sys/$key" "/proc/sys/$key"
done
ip link set lo up
ip link set tarsy-node name eth0
ip address add "$address/30" dev eth0
ip link set eth0 up
ip route add default via "$gateway"
echo 1 >/proc/sys/net/ipv4/ip_forward

declare -A names
start() {
    local name=$1
    shift
    "$@" >"$log/$name.log" 2>&1 &
    names[$!]=$name
}

# until_true SECONDS WHAT COMMAND...: there is no event to wait for.
until_true() {
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < end)) || { echo "node.sh: $what is not there in time; see $log" >&2; exit 1; }
        sleep 0.5
    done
}
kube() { kubectl --kubeconfig "$pki/admin.kubeconfig" "$@"; }

# Nothing here is kept, so nothing is ended in order: the kernel does it all at once.
trap 'exit 0' TERM INT

start etcd "$programs/etcd" --name=node --data-dir="$state/etcd" --log-level=warn --unsafe-no-fsync \
    --listen-client-urls=https://127.0.0.1:2379 --advertise-client-urls=https://127.0.0.1:2379 \
    --listen-peer-urls=http://127.0.0.1:2380 --initial-advertise-peer-urls=http://127.0.0.1:2380 \
    --initial-cluster=node=http://127.0.0.1:2380 --client-cert-auth=true \
    --cert-file="$pki/etcd.crt" --key-file="$pki/etcd.key" --trusted-ca-file="$pki/etcd-ca.crt"
# Nobody has a quota here, and a busy machine counts them so slowly that what is created is refused.
start kube-apiserver "$programs/kube-apiserver" --bind-address=0.0.0.0 --secure-port=6443 \
    --advertise-address="$address" --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
    --disable-admission-plugins=ResourceQuota \
    --allow-privileged=true --service-cluster-ip-range="$services" --profiling=false \
    --etcd-servers=https://127.0.0.1:2379 --etcd-cafile="$pki/etcd-ca.crt" \
    --etcd-certfile="$pki/etcd-client.crt" --etcd-keyfile="$pki/etcd-client.key" \
    --client-ca-file="$pki/ca.crt" --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
    --kubelet-client-certificate="$pki/apiserver-kubelet.crt" --kubelet-client-key="$pki/apiserver-kubelet.key" \
    --kubelet-certificate-authority="$pki/ca.crt" --kubelet-preferred-address-types=InternalIP \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local \
    --service-account-key-file="$pki/service-account.key" --service-account-signing-key-file="$pki/service-account.key" \
    --requestheader-client-ca-file="$pki/front-proxy-ca.crt" --requestheader-allowed-names=front-proxy-client \
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
    --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --proxy-client-cert-file="$pki/front-proxy-client.crt" --proxy-client-key-file="$pki/front-proxy-client.key"
start dockerd dockerd --data-root="$state/docker" --exec-root="$state/exec" --pidfile="$state/docker.pid" \
    --host="$DOCKER_HOST" --bip="$bridge/24" --iptables=false --ip-masq=false --userland-proxy=false \
    --cgroup-parent=/tarsy-cluster --exec-opt=native.cgroupdriver=cgroupfs
until_true 120 "the API" kube get --raw /readyz
until_true 120 "the Docker engine" docker info

start kube-controller-manager "$programs/kube-controller-manager" --kubeconfig="$pki/controller-manager.kubeconfig" \
    --authentication-kubeconfig="$pki/controller-manager.kubeconfig" \
    --authorization-kubeconfig="$pki/controller-manager.kubeconfig" --bind-address=127.0.0.1 \
    --use-service-account-credentials=true --service-account-private-key-file="$pki/service-account.key" \
    --root-ca-file="$pki/ca.crt" --leader-elect=false --cert-dir="$etc"
start kube-scheduler "$programs/kube-scheduler" --kubeconfig="$pki/scheduler.kubeconfig" \
    --authentication-kubeconfig="$pki/scheduler.kubeconfig" --authorization-kubeconfig="$pki/scheduler.kubeconfig" \
    --bind-address=127.0.0.1 --leader-elect=false --cert-dir="$etc"
start kube-proxy "$programs/kube-proxy" --kubeconfig="$pki/proxy.kubeconfig" --hostname-override="$node" \
    --proxy-mode=iptables --cluster-cidr="$pods" --conntrack-max-per-core=0 \
    --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables

# Names of Services: a file each, which dnsmasq sees come. Pods ask at the address of Docker's bridge.
mkdir -p "$etc/hosts"
start dnsmasq dnsmasq --keep-in-foreground --conf-file=/dev/null --pid-file= --user=root --no-hosts --no-resolv \
    --bind-interfaces --listen-address="$bridge" --hostsdir="$etc/hosts" --local=/cluster.local/ --log-facility=-
tell_names() {
    kube get services --all-namespaces --watch --no-headers \
        -o custom-columns=:metadata.namespace,:metadata.name,:spec.clusterIP |
        while read -r namespace name ip; do
            [[ $ip == None ]] || echo "$ip $name.$namespace.svc.cluster.local" >"$etc/hosts/$namespace.$name"
        done
}
start names tell_names
: >"$etc/resolv.conf"

start kubelet "$programs/kubelet" --kubeconfig="$pki/kubelet.kubeconfig" --hostname-override="$node" \
    --node-ip="$address" --root-dir="$state/kubelet" --cert-dir="$etc" \
    --tls-cert-file="$pki/kubelet-server.crt" --tls-private-key-file="$pki/kubelet-server.key" \
    --client-ca-file="$pki/ca.crt" --anonymous-auth=false --authorization-mode=Webhook --authentication-token-webhook \
    --container-runtime=docker --docker-endpoint="$DOCKER_HOST" --pod-infra-container-image=tarsy-pause:1 \
    --experimental-dockershim-root-directory="$state/dockershim" --volume-plugin-dir="$state/plugins" \
    --cgroup-driver=cgroupfs --cgroup-root=/tarsy-cluster --oom-score-adj=0 --fail-swap-on=false \
    --cluster-dns="$bridge" --cluster-domain=cluster.local --resolv-conf="$etc/resolv.conf" \
    --image-gc-high-threshold=100 --eviction-hard=memory.available\<100Mi --healthz-port=0 --read-only-port=0
until_true 120 "the node" kube wait --for=condition=Ready --timeout=1s "node/$node"
: >"$state/ready"
wait -n -p ended "${!names[@]}" || true
echo "node.sh: ${names[$ended]} has ended; see $log" >&2
