"""Tests admission: policies with parameters and the authorizer, mutating and validating webhooks, aggregated APIs."""

import asyncio
import base64
import json
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from embedded_kubeapi.pki import SERVER_NAMES, Authority
from embedded_kubeapi.server import EmbeddedApi

Kubectl = Callable[..., subprocess.CompletedProcess[str]]
GROUP = "admissionregistration.k8s.io/v1"


def rule(*resources: str) -> dict[str, Any]:
    return {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": list(resources)}


def only_in(namespace: str) -> dict[str, Any]:
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


def configmap(name: str, namespace: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


@pytest.fixture
def make(kubectl: Kubectl) -> Callable[[dict[str, Any]], None]:
    def create(obj: dict[str, Any]) -> None:
        made = kubectl("create", "-f", "-", stdin=obj)
        assert made.returncode == 0, made.stderr

    return create


def test_policy_refuses_with_its_words_and_parameters(
    kubectl: Kubectl, namespace: str, make: Callable[[dict[str, Any]], None]
) -> None:
    policy = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [rule("configmaps")], "namespaceSelector": only_in(namespace)},
        "matchConditions": [{"name": "not-limits", "expression": "object.metadata.name != 'limits'"}],
        "variables": [{"name": "count", "expression": "has(object.data) ? size(object.data) : 0"}],
        "validations": [
            {
                "expression": "variables.count <= int(params.data.most)",
                "messageExpression": "'at most ' + params.data.most + ' keys'",
            }
        ],
    }
    make(configmap("limits", namespace, most="1"))
    make({"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": namespace}, "spec": policy})
    binding = {"policyName": namespace, "validationActions": ["Deny"], "paramRef": {"name": "limits"}}
    kind = "ValidatingAdmissionPolicyBinding"
    make({"apiVersion": GROUP, "kind": kind, "metadata": {"name": namespace}, "spec": binding})
    make(configmap("small", namespace, a="1"))
    refused = kubectl("create", "-f", "-", stdin=configmap("large", namespace, a="1", b="2"))
    assert f"ValidatingAdmissionPolicy '{namespace}' with binding '{namespace}' denied request: at most 1 keys" in (
        refused.stderr
    )
    kubectl("patch", "validatingadmissionpolicybinding", namespace, "--type=merge", "-p",
            '{"spec":{"validationActions":["Warn"]}}')  # fmt: skip
    warned = kubectl("create", "-f", "-", stdin=configmap("large", namespace, a="1", b="2"))
    assert warned.returncode == 0
    assert "Warning: Validation failed for ValidatingAdmissionPolicy" in warned.stderr


def test_policy_asks_the_authorizer(
    kubectl: Kubectl, api: EmbeddedApi, namespace: str, make: Callable[[dict[str, Any]], None]
) -> None:
    check = (
        "authorizer.group('tarsy.dev').resource('chains').namespace(object.metadata.namespace).name('c').check('use')"
    )
    policy = {
        "matchConstraints": {"resourceRules": [rule("configmaps")], "namespaceSelector": only_in(namespace)},
        "validations": [{"expression": f"{check}.allowed()", "message": "may not use c", "reason": "Forbidden"}],
    }
    make({"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": namespace}, "spec": policy})
    kind = "ValidatingAdmissionPolicyBinding"
    make({"apiVersion": GROUP, "kind": kind, "metadata": {"name": namespace}, "spec": {"policyName": namespace}})
    may_use = {"apiGroups": ["tarsy.dev"], "resources": ["chains"], "verbs": ["use"], "resourceNames": ["c"]}
    meta = {"name": "u", "namespace": namespace}
    make({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta, "rules": [may_use]})
    for user in ("writer", "user"):
        assert (
            kubectl(
                "create", "rolebinding", f"{user}-e", "--clusterrole=edit", f"--user={user}", "-n", namespace
            ).returncode
            == 0
        )
    assert kubectl("create", "rolebinding", "user-u", "--role=u", "--user=user", "-n", namespace).returncode == 0
    refused = kubectl("create", "configmap", "a", "-n", namespace, kubeconfig=api.kubeconfig_for("writer"))
    assert "may not use c" in refused.stderr
    allowed = kubectl("create", "configmap", "a", "-n", namespace, kubeconfig=api.kubeconfig_for("user"))
    assert allowed.returncode == 0, allowed.stderr


@asynccontextmanager
async def https(folder: Path, handler: Any, client_ca: Path | None = None) -> AsyncIterator[tuple[int, str]]:
    """A server on 127.0.0.1; its port and CA bundle."""
    authority = Authority("other")
    pair = authority.issue("other", names=SERVER_NAMES, addresses=["127.0.0.1"])
    (folder / "crt").write_bytes(pair.certificate)
    (folder / "key").write_bytes(pair.key)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=client_ca and str(client_ca))
    if client_ca:
        tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_cert_chain(folder / "crt", folder / "key")
    runner = web.ServerRunner(web.Server(handler))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        yield runner.addresses[0][1], base64.b64encode(authority.certificate).decode()
    finally:
        await runner.cleanup()


async def test_webhook_changes_and_refuses(kubectl: Kubectl, namespace: str, tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        asked = (await request.json())["request"]
        answer: dict[str, Any] = {"uid": asked["uid"], "allowed": True, "warnings": ["looked at"]}
        if request.path == "/mutate":
            patch = b'[{"op":"add","path":"/metadata/labels","value":{"seen":"yes"}}]'
            answer |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}
        elif asked["name"] == "bad":
            answer |= {"allowed": False, "status": {"message": f"not by {asked['userInfo']['username']}", "code": 403}}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer})

    async with https(tmp_path, handler) as (port, bundle):
        for kind, path in (("Mutating", "mutate"), ("Validating", "validate")):
            webhook = {
                "name": f"{path}.example.com",
                "clientConfig": {"url": f"https://127.0.0.1:{port}/{path}", "caBundle": bundle},
                "rules": [rule("configmaps")],
                "namespaceSelector": only_in(namespace),
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
            configuration = {"apiVersion": GROUP, "kind": f"{kind}WebhookConfiguration",
                             "metadata": {"name": namespace}, "webhooks": [webhook]}  # fmt: skip
            made = await asyncio.to_thread(kubectl, "create", "-f", "-", stdin=configuration)
            assert made.returncode == 0, made.stderr
        good = await asyncio.to_thread(kubectl, "create", "-f", "-", stdin=configmap("good", namespace))
        assert "Warning: looked at" in good.stderr
        labels = await asyncio.to_thread(
            kubectl, "get", "cm", "good", "-n", namespace, "-o", "jsonpath={.metadata.labels}"
        )
        assert labels.stdout == '{"seen":"yes"}'
        bad = await asyncio.to_thread(kubectl, "create", "-f", "-", stdin=configmap("bad", namespace))
        assert 'admission webhook "validate.example.com" denied the request: not by kubernetes-admin' in bad.stderr
    gone = await asyncio.to_thread(kubectl, "create", "-f", "-", stdin=configmap("later", namespace))
    assert 'failed calling webhook "mutate.example.com"' in gone.stderr


async def test_aggregated_api_is_served_with_the_callers_name(
    kubectl: Kubectl, api: EmbeddedApi, namespace: str, tmp_path: Path
) -> None:
    callers, accepted, connections = [], {}, set()
    group = f"g{namespace}.example.com"

    async def handler(request: web.BaseRequest) -> web.Response:
        caller = request.headers["X-Remote-User"]
        callers.append((caller, request.headers.getall("X-Remote-Group", [])))
        assert request.transport is not None
        connections.add(request.transport.get_extra_info("peername"))
        accepted[caller] = request.headers.get("Accept-Encoding")
        entry = {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": ["list"]}
        body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/v1", "resources": [entry]}
        if request.path.endswith("/things"):
            body = {"kind": "ThingList", "apiVersion": f"{group}/v1", "metadata": {}, "items": []}
        response = web.json_response(body)
        response.enable_compression()  # if the caller accepts it, as API servers do with long lists
        return response

    front_proxy_ca = api.ca_file.parent / "front-proxy-ca.crt"
    async with https(tmp_path, handler, front_proxy_ca) as (port, bundle):
        meta = {"name": "kubernetes", "namespace": "default"}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": meta,
                   "spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}  # fmt: skip
        spec = {"group": group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
                "caBundle": bundle, "service": {**meta, "port": port}}  # fmt: skip
        extension = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                     "metadata": {"name": f"v1.{group}"}, "spec": spec}  # fmt: skip
        for obj in (service, extension):
            applied = await asyncio.to_thread(kubectl, "apply", "-f", "-", stdin=obj)
            assert applied.returncode == 0, applied.stderr
        name = f"apiservice/v1.{group}"
        ready = await asyncio.to_thread(kubectl, "wait", "--for=condition=Available", name, "--timeout=60s")
        assert ready.returncode == 0, ready.stderr
        listed = await asyncio.to_thread(kubectl, "get", f"things.{group}", "-n", namespace)
        assert "No resources found" in listed.stderr, listed.stderr
        assert ("kubernetes-admin", ["system:masters", "system:authenticated"]) in callers
        assert accepted == {"kubernetes-admin": "gzip", "system:kube-aggregator": None}
        assert len(connections) < len(callers), "requests that follow each other share a connection"
    await asyncio.to_thread(kubectl, "delete", "apiservice", f"v1.{group}")


def test_registrations_have_the_defaults_that_other_api_servers_rely_on(
    kubectl: Kubectl, namespace: str, make: Callable[[dict[str, Any]], None]
) -> None:
    """An API server that reads policies from here refuses every write where a selector is missing."""
    nobody = {**rule("configmaps"), "resourceNames": ["nobody"]}
    service = {"name": "s", "namespace": namespace}
    hook = {"name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Ignore"}
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        hooks = [{**hook, "clientConfig": {"service": service}, "rules": [rule("nothings")]}]
        make({"apiVersion": GROUP, "kind": kind, "metadata": {"name": namespace}, "webhooks": hooks})
    matching = {"resourceRules": [nobody]}
    policy = {"matchConstraints": matching, "validations": [{"expression": "true"}]}
    make({"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": namespace}, "spec": policy})
    bound = {"policyName": namespace, "validationActions": ["Deny"], "matchResources": matching}
    make(
        {
            "apiVersion": GROUP,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": namespace},
            "spec": bound,
        }
    )

    def found(kind: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(kubectl("get", kind, namespace, "-o", "json").stdout)
        kubectl("delete", kind, namespace)
        return answer

    selecting = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
    (mutating,) = found("mutatingwebhookconfiguration")["webhooks"]
    (validating,) = found("validatingwebhookconfiguration")["webhooks"]
    for each in (mutating, validating):
        assert each.items() >= selecting.items() and each["timeoutSeconds"] == 10 and each["failurePolicy"] == "Ignore"
        assert each["clientConfig"]["service"]["port"] == 443 and each["rules"][0]["scope"] == "*"
    assert mutating["reinvocationPolicy"] == "Never" and "reinvocationPolicy" not in validating
    spec = found("validatingadmissionpolicy")["spec"]
    assert spec["failurePolicy"] == "Fail" and spec["matchConstraints"].items() >= selecting.items()
    assert found("validatingadmissionpolicybinding")["spec"]["matchResources"].items() >= selecting.items()
