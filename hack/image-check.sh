#!/usr/bin/env bash
# Builds the image and runs it the way the Deployment does: other user, read-only root file system, no capabilities.
# For a plain Debian machine without a registry and without a running Docker, as root:
#   apt-get install docker.io debootstrap; make page
# A Docker engine of its own is started and stopped here, and a debootstrap root serves as the base image. With
# BASE_IMAGE set and DOCKER_HOST pointing at an engine that can build, both are left out. A pip configuration is passed
# as a build secret: PIP_CONFIG_FILE, else /etc/pip.conf.
set -euo pipefail
cd "$(dirname "$0")/.."

docker=${DOCKER:-docker}
image=tarsy-operator:check
work=$(mktemp -d)
engine=

cleanup() {
    if [[ -n $engine ]]; then
        kill "$engine" && wait "$engine" || true
        # Docker leaves the namespace of host networking mounted.
        umount "$work"/exec/netns/* 2>/dev/null || true
    else
        "$docker" rm -f tarsy-image-check >/dev/null 2>&1 || true
    fi
    rm -rf --one-file-system "$work"
}
trap cleanup EXIT

fail() {
    echo "image-check: $*" >&2
    exit 1
}

start_engine() {
    export DOCKER_HOST=unix://$work/docker.sock
    dockerd --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/docker.pid" --host "$DOCKER_HOST" \
        --storage-driver=vfs --bridge=none --iptables=false >"$work/dockerd.log" 2>&1 &
    engine=$!
    for _ in $(seq 60); do
        "$docker" info >/dev/null 2>&1 && return
        kill -0 "$engine" 2>/dev/null || break
        sleep 0.5
    done
    tail -n 20 "$work/dockerd.log" >&2
    fail "dockerd did not start; its log ends above"
}

make_base() {
    echo "== base image from debootstrap (bookworm, its Python is 3.11)"
    debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv bookworm "$work/root" \
        >"$work/debootstrap.log" 2>&1 || { tail -n 20 "$work/debootstrap.log" >&2; fail "debootstrap failed"; }
    # The build trusts whom this machine trusts.
    cp /etc/ssl/certs/ca-certificates.crt "$work/root/etc/ssl/certs/ca-certificates.crt"
    tar -C "$work/root" -c --exclude=./dev --exclude=./proc --exclude=./sys . | "$docker" import - tarsy-base:check
    BASE_IMAGE=tarsy-base:check
}

# As the Deployment runs it; networks need a bridge, so the host's is used.
contained() {
    "$docker" run --name tarsy-image-check --read-only --tmpfs /tmp:size=64m --user 65532:65532 --cap-drop ALL \
        --security-opt no-new-privileges --network host "$@"
}

[[ -f operator/tarsy/http/page/index.html ]] || fail "there is no page to put in: run make page"
[[ -n ${DOCKER_HOST:-} ]] || start_engine
[[ -n ${BASE_IMAGE:-} ]] || make_base

echo "== build"
make --silent launcher
secret=()
pip_config=${PIP_CONFIG_FILE:-/etc/pip.conf}
[[ -r $pip_config ]] && secret=(--secret "id=pip,src=$pip_config")
DOCKER_BUILDKIT=1 "$docker" build --network=host --progress=plain --build-arg "BASE_IMAGE=$BASE_IMAGE" \
    --build-arg PAGE=made --build-arg LAUNCHER=made "${secret[@]}" --tag "$image" . >"$work/build.log" 2>&1 || { tail -n 40 "$work/build.log" >&2; fail "the build failed"; }
"$docker" image inspect --format 'size {{.Size}} bytes, user {{.Config.User}}, entry point {{.Config.Entrypoint}}' "$image"

echo "== the command line, the CRDs, the shipped manifests and the tool server are in it"
contained --rm "$image" --help >/dev/null || fail "tarsy --help failed"
contained --rm --entrypoint tarsy-launcher "$image" --install /tmp || fail "the launcher does not run"
kinds=$(contained --rm "$image" crds | grep -c '^kind: CustomResourceDefinition')
[[ $kinds == "$(find crds -name '*.yaml' ! -name kustomization.yaml | wc -l)" ]] || fail "tarsy crds printed $kinds kinds"
contained --rm --entrypoint python "$image" -c '
import importlib.util, os, pathlib, tarsy
here = pathlib.Path(tarsy.__file__).parent
assert (here / "manifests/library/chain.yaml").is_file(), "the library is missing"
assert pathlib.Path(importlib.util.cache_from_source(str(here / "__init__.py"))).is_file(), "no compiled bytecode"
assert importlib.util.find_spec("pip") is None or "/opt/tarsy" not in importlib.util.find_spec("pip").origin
assert (here / "http/page/index.html").is_file(), "the page is missing"
assert os.getuid() == 65532 and not os.access(here, os.W_OK)
import getpass
assert getpass.getuser() == "tarsy"  # kopf asks
import tarsy.app.operator, tarsy.kubernetes_tools.tools
' || fail "the image lacks something; see above"

echo "== the operator waits for Postgres, says so, and ends on SIGTERM"
contained --detach --env TARSY_DATABASE_URL=postgresql://tarsy:secret@127.0.0.1:1/tarsy \
    "$image" run --health-port=0 --json-logs >/dev/null
for _ in $(seq 60); do
    "$docker" logs tarsy-image-check >"$work/run.log" 2>&1
    grep -q 'waiting for Postgres' "$work/run.log" && break
    sleep 0.5
done
grep -m 1 'waiting for Postgres' "$work/run.log" || { cat "$work/run.log" >&2; fail "it does not wait for Postgres"; }
"$docker" stop --time 20 tarsy-image-check >/dev/null
status=$("$docker" inspect --format '{{.State.ExitCode}}' tarsy-image-check)
[[ $status == 0 ]] || fail "it ended with $status on SIGTERM"
! "$docker" logs tarsy-image-check 2>&1 | grep -q secret || fail "the log has the database password"
"$docker" rm tarsy-image-check >/dev/null

echo "== the tool server answers by another name than localhost, as the Service's"
contained --detach --entrypoint python "$image" -m tarsy.kubernetes_tools --http --host 0.0.0.0 --port 0 >/dev/null
for _ in $(seq 60); do
    port=$("$docker" logs tarsy-image-check 2>&1 | sed -n 's|^http://.*:\([0-9]*\)/mcp$|\1|p')
    [[ -n $port ]] && break
    sleep 0.5
done
[[ -n $port ]] || { "$docker" logs tarsy-image-check >&2; fail "the tool server does not start"; }
"$docker" exec tarsy-image-check python -c '
import asyncio, sys
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
async def main():
    headers = {"Host": "kubernetes-tools.tarsy-library.svc:8080"}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{sys.argv[1]}/mcp", http_client=http)
        async with Client(transport) as client:
            print("tools:", *(tool.name for tool in (await client.list_tools()).tools))
asyncio.run(main())
' "$port" || fail "the tool server refuses the name of its Service"
"$docker" rm --force tarsy-image-check >/dev/null
echo "image-check: all well"
