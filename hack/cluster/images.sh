#!/usr/bin/env bash
# The images of the cluster: nothing is pulled. The base is Debian's, made by debootstrap once and kept in the cache; the
# pause program is a few lines of C. They are built by an engine on this machine's network (the build gets Python
# packages) over the folder that the node's engine, which has no way out, finds them in.
# Called as: images.sh STATE CACHE   (cluster.sh is who calls it)
set -euo pipefail
cd "$(dirname "$0")/../.."
state=$1 cache=$2 here=hack/cluster
work=$(mktemp -d)
engine=
# The client that comes with Debian's engine: newer ones build with a component that Debian 12 does not have.
docker=${DOCKER:-/usr/bin/docker}

finish() {
    # unshare itself waits for the engine, whatever signal it gets.
    [[ -z $engine ]] || { pkill --parent "$engine" && wait "$engine" || true; }
    rm -rf --one-file-system "$work"
}
trap finish EXIT

quietly() {
    "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; echo "images.sh: $* failed; its log ends above" >&2; exit 1; }
}

if [[ ! -f $cache/base.tar ]]; then
    echo "== base image from debootstrap (bookworm: Python 3.11, Postgres 15)"
    quietly debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv,postgresql-15 bookworm "$work/root"
    # The build trusts whom this machine trusts.
    cp /etc/ssl/certs/ca-certificates.crt "$work/root/etc/ssl/certs/ca-certificates.crt"
    tar -C "$work/root" -cf "$work/base.tar" --exclude=./dev --exclude=./proc --exclude=./sys --exclude=./var/cache/apt .
    mv "$work/base.tar" "$cache/base.tar"
fi

echo "== images"
export DOCKER_HOST=unix://$work/docker.sock DOCKER_BUILDKIT=1
unshare --mount --pid --fork --kill-child=SIGTERM --mount-proc --propagation private \
    dockerd --data-root="$state/docker" --exec-root="$work/exec" --pidfile="$work/docker.pid" --host="$DOCKER_HOST" \
    --bridge=none --iptables=false --cgroup-parent=/tarsy-cluster >"$state/log/build-dockerd.log" 2>&1 &
engine=$!
for _ in $(seq 120); do
    ! "$docker" info >/dev/null 2>&1 || break
    kill -0 "$engine" || { tail -n 20 "$state/log/build-dockerd.log" >&2; exit 1; }
    sleep 0.5
done
quietly "$docker" import "$cache/base.tar" tarsy-base:cluster
gcc -Os -static -o "$work/pause" $here/pause.c
printf 'FROM scratch\nCOPY pause /pause\nUSER 65535:65535\nENTRYPOINT ["/pause"]\n' >"$work/Dockerfile"
quietly "$docker" build --tag tarsy-pause:1 "$work"
quietly "$docker" build --network=host --build-arg BASE_IMAGE=tarsy-base:cluster --tag tarsy-postgres:cluster $here/postgres
make --silent launcher
secret=()
pip_config=${PIP_CONFIG_FILE:-/etc/pip.conf}
[[ -r $pip_config ]] && secret=(--secret "id=pip,src=$pip_config")
quietly "$docker" build --network=host --progress=plain --build-arg BASE_IMAGE=tarsy-base:cluster \
    --build-arg PAGE=made --build-arg LAUNCHER=made "${secret[@]}" --tag tarsy-operator:cluster .
"$docker" images --format '{{.Repository}}:{{.Tag}} {{.Size}}'
