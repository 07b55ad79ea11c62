"""Tests the fields of built-in kinds: unknown and wrong ones are refused, lists merge, kubectl explains them."""

import subprocess
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

Kubectl = Callable[..., subprocess.CompletedProcess[str]]
APPLY = {"Content-Type": "application/apply-patch+yaml"}


def deployment(name: str, namespace: str, **container: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "web", "image": "web:1", **container}]}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("pod.spec.containers.ports",), ("ports <[]ContainerPort>", "containerPort\t<integer> -required-")),
        (("deployment.spec.template.spec.containers.resources",), ("limits\t<map[string]Quantity>",)),
        (("crd.spec.versions.schema.openAPIV3Schema.properties",), ("x-kubernetes-validations",)),
        (("validatingadmissionpolicy.spec.matchConditions",), ("expression\t<string> -required-",)),
        (("event", "--api-version=events.k8s.io/v1"), ("regarding\t<ObjectReference>", "note\t<string>")),
        (("secret", "--recursive"), ("stringData\t<map[string]string>",)),
        (("pod.spec.containers.ports", "--output=plaintext-openapiv2"), ("containerPort\t<integer> -required-",)),
        (("pdb.spec", "--output=plaintext-openapiv2"), ("maxUnavailable\t<string>",)),
    ],
)
def test_kubectl_explains_builtin_kinds_from_both_forms_of_openapi(
    kubectl: Kubectl, arguments: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    explained = kubectl("explain", *arguments)
    assert explained.returncode == 0, explained.stderr
    for text in shown:
        assert text in explained.stdout


def test_kubectl_apply_names_a_misspelt_field(kubectl: Kubectl, namespace: str) -> None:
    odd = deployment("odd", namespace, imag="x")
    odd["spec"]["replica"] = 2
    refused = kubectl("apply", "-f", "-", stdin=odd)
    assert refused.returncode == 1
    assert 'unknown field "spec.replica", unknown field "spec.template.spec.containers[0].imag"' in refused.stderr
    warned = kubectl("apply", "--validate=warn", "-f", "-", stdin=odd)
    assert warned.returncode == 0
    assert 'Warning: unknown field "spec.replica"' in warned.stderr
    silent = kubectl("apply", "--validate=ignore", "-f", "-", stdin=odd)
    assert (silent.returncode, silent.stderr) == (0, "")
    kept = kubectl("get", "deployment", "odd", "-n", namespace, "-o", "jsonpath={.spec}").stdout
    assert 'replica"' not in kept and 'imag"' not in kept


@pytest.mark.parametrize(
    ("path", "obj", "message"),
    [
        ("deployments", {"spec": {"replicas": "two"}},
         'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct '
         "field DeploymentSpec.spec.replicas of type int32"),
        ("deployments", {"spec": {"template": {"spec": {"containers": [{"name": 1}]}}}},
         'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal number into Go struct '
         "field Container.spec.template.spec.containers.name of type string"),
        ("deployments", {"spec": {"template": {"spec": {"containers": [{"resources": {"limits": {"cpu": "x"}}}]}}}},
         'Deployment in version "v1" cannot be handled as a Deployment: quantities must match the regular expression '
         "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
    ],
)  # fmt: skip
async def test_value_of_a_wrong_type_is_refused_in_the_decoders_words(
    http: aiohttp.ClientSession, namespace: str, path: str, obj: dict[str, Any], message: str
) -> None:
    url = f"/apis/apps/v1/namespaces/{namespace}/{path}"
    async with http.post(url, json={"metadata": {"name": "wrong"}, **obj}) as answer:
        body = await answer.json()
    assert (answer.status, body["reason"], body["message"]) == (400, "BadRequest", message)


async def test_nulls_are_unset_and_quantities_are_texts(http: aiohttp.ClientSession, namespace: str) -> None:
    url = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    sent = deployment("web", namespace, resources={"limits": {"cpu": 1}}, command=None)
    sent["spec"]["template"]["metadata"]["creationTimestamp"] = None
    async with http.post(url, json=sent) as answer:
        template = (await answer.json())["spec"]["template"]
    assert template["metadata"] == {"labels": {"app": "web"}}
    assert template["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
    assert "command" not in template["spec"]["containers"][0]


async def test_lists_of_builtin_kinds_merge_by_the_keys_of_their_types(
    http: aiohttp.ClientSession, namespace: str
) -> None:
    url = f"/apis/apps/v1/namespaces/{namespace}/deployments/shared"

    async def apply(manager: str, **container: Any) -> dict[str, Any]:
        obj = deployment("shared", namespace, **container)
        async with http.patch(url, json=obj, headers=APPLY, params={"fieldManager": manager}) as answer:
            body: dict[str, Any] = await answer.json()
            assert answer.status in (200, 201), body
            return body

    port = {"containerPort": 80}
    await apply("alice", ports=[port], env=[{"name": "A", "value": "1"}], args=["a"])
    made = await apply("bob", ports=[{"containerPort": 80, "protocol": "UDP"}], env=[{"name": "B", "value": "2"}])
    (container,) = made["spec"]["template"]["spec"]["containers"]
    assert [(p["containerPort"], p["protocol"]) for p in container["ports"]] == [(80, "TCP"), (80, "UDP")]
    assert [variable["name"] for variable in container["env"]] == ["A", "B"]
    (entry,) = [e for e in made["metadata"]["managedFields"] if e["manager"] == "alice"]
    owned = entry["fieldsV1"]["f:spec"]
    assert owned["f:selector"] == {}
    assert 'k:{"containerPort":80,"protocol":"TCP"}' in str(owned)
    assert "f:args" in str(owned) and "v:" not in str(owned)


def test_strategic_patch_merges_ports_of_a_service_by_port(kubectl: Kubectl, namespace: str) -> None:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": namespace},
               "spec": {"selector": {"a": "b"}, "ports": ports}}  # fmt: skip
    assert kubectl("create", "-f", "-", stdin=service).returncode == 0
    patch = '{"spec":{"ports":[{"port":81,"name":"c"}]}}'
    assert kubectl("patch", "service", "s", "-n", namespace, "-p", patch).returncode == 0
    shown = kubectl("get", "service", "s", "-n", namespace, "-o", "jsonpath={.spec.ports[*].name}").stdout
    assert sorted(shown.split()) == ["a", "c"]


async def test_events_of_either_form_are_the_same_events(
    http: aiohttp.ClientSession, kubectl: Kubectl, namespace: str
) -> None:
    core = f"/api/v1/namespaces/{namespace}/events"
    new = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    about = {"kind": "ConfigMap", "name": "c", "namespace": namespace, "uid": "u1"}
    old_form = {"metadata": {"name": "e1"}, "involvedObject": about, "reason": "Old", "message": "said", "count": 3}
    new_form = {"metadata": {"name": "e2"}, "regarding": about, "reason": "New", "note": "noted", "action": "Act",
                "reportingController": "tester", "eventTime": "2026-01-01T00:00:00.000000Z"}  # fmt: skip
    for url, event in ((core, old_form), (new, new_form)):
        async with http.post(url, json=event, params={"fieldValidation": "Strict"}) as answer:
            assert answer.status == 201, await answer.json()
    async with http.get(core, params={"fieldSelector": "involvedObject.uid=u1"}) as answer:
        items = (await answer.json())["items"]
    assert [(e["metadata"]["name"], e["message"]) for e in items] == [("e1", "said"), ("e2", "noted")]
    assert items[1]["reportingComponent"] == "tester"
    async with http.get(new, params={"fieldSelector": "regarding.uid=u1"}) as answer:
        listed = await answer.json()
    items = listed["items"]
    assert (listed["apiVersion"], [event["note"] for event in items]) == ("events.k8s.io/v1", ["said", "noted"])
    assert items[0]["deprecatedCount"] == 3
    for kind in ("events", "events.events.k8s.io"):
        assert "configmap/c" in kubectl("get", kind, "-n", namespace).stdout
    async with http.delete(f"{new}/e1") as answer:
        assert answer.status == 200
    async with http.get(f"{core}/e1") as answer:
        assert answer.status == 404
