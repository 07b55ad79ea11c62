#!/usr/bin/env bash
# TARSy on a kind cluster: cluster, image, CRDs, operator, library and a Postgres for trying out. Run again after a
# change to roll it out; the database and its password stay.
# Settings: CLUSTER (tarsy), BASE_IMAGE (of the Dockerfile), KIND_IMAGE (the node's; kind's own when not set).
set -euo pipefail
cd "$(dirname "$0")/.."

cluster=${CLUSTER:-tarsy}
image=tarsy-operator:dev

for tool in docker kind kubectl; do
    command -v "$tool" >/dev/null || { echo "kind.sh: $tool is needed and not on PATH; install it" >&2; exit 1; }
done
docker info >/dev/null 2>&1 || { echo "kind.sh: Docker does not answer; start it, or set DOCKER_HOST" >&2; exit 1; }
kube() { kubectl --context "kind-$cluster" "$@"; }

if ! kind get clusters 2>/dev/null | grep -qx "$cluster"; then
    kind create cluster --name "$cluster" --wait 120s ${KIND_IMAGE:+--image "$KIND_IMAGE"}
fi

DOCKER_BUILDKIT=1 docker build ${BASE_IMAGE:+--build-arg "BASE_IMAGE=$BASE_IMAGE"} \
    --build-arg "REVISION=$(git rev-parse HEAD 2>/dev/null || echo unknown)" --tag "$image" .
kind load docker-image "$image" --name "$cluster"

# Objects of the kinds are only accepted once the API server serves the kinds.
kube apply -k crds
kube wait --for=condition=Established --timeout=60s crd -l app.kubernetes.io/part-of=tarsy
kube apply -f manifests/base/namespace.yaml

hack/database-secret.sh kubectl --context "kind-$cluster"

kube apply -k manifests/overlays/dev
# The tag stays the same when the image does not: pods of an image of before are replaced.
kube -n tarsy-system rollout restart deployment/tarsy-operator
kube -n tarsy-library rollout restart deployment/kubernetes-tools
kube -n tarsy-system rollout status statefulset/tarsy-postgres --timeout=180s
kube -n tarsy-system rollout status deployment/tarsy-operator --timeout=180s
kube -n tarsy-library rollout status deployment/kubernetes-tools --timeout=180s

cat <<EOF

TARSy runs on kind-$cluster. It has no model yet; fill in one of these and apply it:
    manifests/samples/fill-in/llmprovider-openai.yaml    OpenAI, with your key
    manifests/samples/fill-in/llmprovider-local.yaml     a server of your own (Ollama, vLLM)
Then give it a Deployment in trouble (its image does not exist, so here its pods wait for that) and an alert, and watch:
    kubectl --context kind-$cluster apply -f manifests/samples/demo/crashloop.yaml
    kubectl --context kind-$cluster apply -n shop -f manifests/samples/demo/alert-kubepodcrashlooping.yaml
    kubectl --context kind-$cluster get inv -n shop -w
Remove everything:
    kind delete cluster --name $cluster
EOF
