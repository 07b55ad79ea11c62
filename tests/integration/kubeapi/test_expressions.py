"""Tests expressions and patterns: bad ones are refused when written, costly ones end soon."""

import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest

GROUP = "/apis/admissionregistration.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SECONDS = 90.0  # of a busy machine; without a limit these take hours


def policy(namespace: str, **spec: Any) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    only = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    constraints = {"resourceRules": [rule], "namespaceSelector": only}
    return {"metadata": {"name": namespace}, "spec": {"matchConstraints": constraints, **spec}}


@pytest.mark.parametrize(
    ("spec", "field", "why"),
    [
        ({"validations": [{"expression": "true"}, {"expression": "object."}]}, "spec.validations[1].expression",
         "compilation failed: ERROR: <input>:1:8: Syntax error"),
        ({"validations": [{"expression": "nobody.knows"}]}, "spec.validations[0].expression",
         "undeclared reference to 'nobody'"),
        ({"validations": [{"expression": "params.data == 1"}]}, "spec.validations[0].expression",
         "undeclared reference to 'params'"),
        ({"validations": [{"expression": "true", "messageExpression": "'a' +"}]},
         "spec.validations[0].messageExpression", "Syntax error"),
        ({"validations": [{"expression": "variables.b"}], "variables": [{"name": "a", "expression": "1"}]},
         "spec.validations[0].expression", "undefined field 'b'"),
        ({"validations": [{"expression": "true"}], "variables": [{"name": "a", "expression": "variables.a"}]},
         "spec.variables[0].expression", "undefined field 'a'"),
        ({"validations": [{"expression": "true"}], "matchConditions": [{"name": "m", "expression": "((("}]},
         "spec.matchConditions[0].expression", "Syntax error"),
        ({"validations": [{"expression": "(" * 3000 + "1" + ")" * 3000}]}, "spec.validations[0].expression",
         "recursion limit exceeded"),
        ({}, "spec.validations", "must contain at least one item"),
    ],
)  # fmt: skip
async def test_policy_with_a_bad_expression_is_refused_at_its_field(
    http: aiohttp.ClientSession, namespace: str, spec: dict[str, Any], field: str, why: str
) -> None:
    async with http.post(f"{GROUP}/validatingadmissionpolicies", json=policy(namespace, **spec)) as answer:
        body = await answer.json()
    assert (answer.status, body["reason"]) == (422, "Invalid")
    assert [cause["field"] for cause in body["details"]["causes"]] == [field]
    assert why in body["message"]


async def test_webhook_with_a_bad_match_condition_is_refused(http: aiohttp.ClientSession, namespace: str) -> None:
    webhook = {"name": "a.example.com", "clientConfig": {"url": "https://127.0.0.1:1"}, "sideEffects": "None",
               "admissionReviewVersions": ["v1"],
               "matchConditions": [{"name": "m", "expression": "params.a"}]}  # fmt: skip
    configuration = {"metadata": {"name": namespace}, "webhooks": [webhook]}
    async with http.post(f"{GROUP}/validatingwebhookconfigurations", json=configuration) as answer:
        body = await answer.json()
    assert answer.status == 422
    assert body["details"]["causes"][0]["field"] == "webhooks[0].matchConditions[0].expression"


Serve = Callable[[dict[str, Any]], Awaitable[str]]


def thing(url: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """An object of the kind at a URL."""
    kind = url.rpartition("/")[2].capitalize()
    return {"apiVersion": "cel.example.com/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def serve(http: aiohttp.ClientSession, namespace: str) -> AsyncIterator[Serve]:
    """Serve a kind whose spec has this schema; the URL of its objects."""
    made: list[str] = []

    async def serve(spec: dict[str, Any]) -> str:
        plural = f"things{uuid.uuid4().hex[:8]}"
        schema = {"type": "object", "properties": {"spec": {"type": "object", **spec}}}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"plural": plural, "kind": plural.capitalize()}
        crd = {"metadata": {"name": f"{plural}.cel.example.com"},
               "spec": {"group": "cel.example.com", "scope": "Namespaced", "names": names,
                        "versions": [version]}}  # fmt: skip
        async with http.post(CRDS, json=crd) as answer:
            body = await answer.json()
            if answer.status != 201:
                return str(body["message"])
        made.append(f"{CRDS}/{plural}.cel.example.com")
        return f"/apis/cel.example.com/v1/namespaces/{namespace}/{plural}"

    yield serve
    for url in made:
        async with http.delete(url):
            pass


NUMBERS = {"type": "array", "items": {"type": "integer"}}


@pytest.mark.parametrize(
    "rule",
    [
        "self.items.all(a, self.items.all(b, self.items.all(c, a + b + c >= 0)))",
        "self.items.exists(a, self.items.all(b, self.items.all(c, true)) && false) || true",
        "size(lists.range(2000000000)) > 0",
        "'" + "a" * 999 + "'" + f".replace('a', '{'a' * 999}')" * 9 + " != ''",
        "[1]" + ".map(x, [x, x])" * 40 + " != [1]" + ".map(x, [x, x])" * 40,
        "self.items.distinct().size() > 0",
    ],
)
async def test_runaway_rule_ends_and_the_object_is_refused(
    http: aiohttp.ClientSession, serve: Serve, rule: str
) -> None:
    url = await serve({"properties": {"items": NUMBERS}, "x-kubernetes-validations": [{"rule": rule, "message": "m"}]})
    assert url.startswith("/"), url
    began = time.monotonic()
    async with http.post(url, json=thing(url, "a", {"items": list(range(2000))})) as answer:
        body = await answer.json()
    assert time.monotonic() - began < _SECONDS
    assert answer.status == 422
    assert "call cost exceeds limit for rule: m" in body["message"]
    if "range" not in rule and "replace" not in rule and "[1]" not in rule:
        async with http.post(url, json=thing(url, "b", {"items": [1, 2]})) as answer:
            assert answer.status == 201, await answer.json()


async def test_runaway_policy_fails_as_its_failure_policy_says(http: aiohttp.ClientSession, namespace: str) -> None:
    costly = "object.data.all(a, object.data.all(b, object.data.all(c, true)))"
    made = policy(namespace, validations=[{"expression": costly}])
    async with http.post(f"{GROUP}/validatingadmissionpolicies", json=made) as answer:
        assert answer.status == 201, await answer.json()
    binding = {"metadata": {"name": namespace}, "spec": {"policyName": namespace, "validationActions": ["Deny"]}}
    async with http.post(f"{GROUP}/validatingadmissionpolicybindings", json=binding) as answer:
        assert answer.status == 201
    configmaps = f"/api/v1/namespaces/{namespace}/configmaps"
    many = {f"k{at}": "" for at in range(500)}
    async with http.post(configmaps, json={"metadata": {"name": "many"}, "data": many}) as answer:
        body = await answer.json()
    assert answer.status == 422
    assert "actual cost limit exceeded" in body["message"]
    async with http.post(configmaps, json={"metadata": {"name": "few"}, "data": {"a": "b"}}) as answer:
        assert answer.status == 201


async def test_patterns_take_linear_time_and_are_those_of_re2(http: aiohttp.ClientSession, serve: Serve) -> None:
    text = {"type": "string"}
    url = await serve({
        "properties": {"text": {**text, "pattern": "^(a|a)*(a|aa)+$"}},
        "x-kubernetes-validations": [{"rule": "!self.text.matches('(a*)*b')"}],
    })  # fmt: skip
    began = time.monotonic()
    async with http.post(url, json=thing(url, "a", {"text": "a" * 5000 + "!"})) as answer:
        assert answer.status == 422
        assert "should match" in (await answer.json())["message"]
    assert time.monotonic() - began < _SECONDS
    async with http.post(url, json=thing(url, "b", {"text": "a" * 5000})) as answer:
        assert answer.status == 201, await answer.json()
    refused = await serve({"properties": {"text": {**text, "pattern": "(?=a)"}}})
    assert "properties[spec].properties[text].pattern: Invalid value" in refused
    assert "must be a valid regular expression, but isn't: error parsing regexp" in refused


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ("self.size > 0", "size"),
        ("self.items.all(i, i.nam != '')", "nam"),
        ("has(oldSelf.siz) || true", "siz"),
        ("self.byName['a'].size > 0", "size"),
        ("self.items.filter(i, i.name == 'a').exists(i, i.other)", "other"),
    ],
)
async def test_rule_that_asks_for_an_unknown_field_is_refused(serve: Serve, rule: str, field: str) -> None:
    part = {"type": "object", "properties": {"name": {"type": "string"}}}
    properties = {"items": {"type": "array", "items": part},
                  "byName": {"type": "object", "additionalProperties": part}}  # fmt: skip
    refused = await serve({"properties": properties, "x-kubernetes-validations": [{"rule": rule}]})
    assert "properties[spec].x-kubernetes-validations[0].rule: Invalid value" in refused
    assert f"compilation failed: ERROR: <input>:1:1: undefined field '{field}'" in refused


@pytest.mark.parametrize(
    "rule",
    [
        "!has(self.free.anything) && self.port == 80 && self.__namespace__ != ''",
        "self.items.all(i, i.name != '' && !has(i.free.what))",
        "self.?items.hasValue() && self.byName.all(k, self.byName[k].name != k)",
        "self.items.map(i, i.name).all(n, n.size() > 0)",
    ],
)
async def test_rule_that_asks_for_what_may_be_there_is_accepted(serve: Serve, rule: str) -> None:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    part = {"type": "object", "properties": {"name": {"type": "string"}, "free": free}}
    properties = {"items": {"type": "array", "items": part}, "free": free, "namespace": {"type": "string"},
                  "port": {"x-kubernetes-int-or-string": True},
                  "byName": {"type": "object", "additionalProperties": part}}  # fmt: skip
    url = await serve({"properties": properties, "x-kubernetes-validations": [{"rule": rule}]})
    assert url.startswith("/"), url


async def test_what_did_not_change_is_not_judged_by_a_newer_schema(http: aiohttp.ClientSession, serve: Serve) -> None:
    text = {"type": "string"}
    part = {"type": "object", "required": ["name"], "properties": {"name": text, "n": {"type": "integer"}}}
    parts = {"type": "array", "items": part, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    properties = {"a": text, "b": text, "parts": parts, "words": {"type": "array", "items": text}}
    url = await serve({"properties": properties})
    spec = {"a": "long", "b": "long", "parts": [{"name": "p", "n": 9}], "words": ["x", "y"]}
    kind = url.rpartition("/")[2]
    async with http.post(url, json=thing(url, "o", spec)) as answer:
        assert answer.status == 201, await answer.json()
    patch = [{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/" + path, "value": value}
             for path, value in (
                 ("properties/a/maxLength", 2), ("properties/b/enum", ["s", "t"]), ("properties/words/maxItems", 1),
                 ("properties/parts/items/properties/n/maximum", 5))]  # fmt: skip
    async with http.patch(
        f"{CRDS}/{kind}.cel.example.com", json=patch, headers={"Content-Type": "application/json-patch+json"}
    ) as answer:
        assert answer.status == 200, await answer.json()

    async def merge(**changed: Any) -> tuple[int, list[str]]:
        headers = {"Content-Type": "application/merge-patch+json"}
        async with http.patch(f"{url}/o", json={"spec": changed}, headers=headers) as answer:
            body = await answer.json()
            return answer.status, [cause["field"] for cause in body.get("details", {}).get("causes", [])]

    assert await merge(b="t") == (200, [])
    assert await merge(a="longer") == (422, ["spec.a"])
    assert await merge(parts=[{"name": "q", "n": 1}, {"name": "p", "n": 9}]) == (200, [])
    assert await merge(parts=[{"name": "p", "n": 8}]) == (422, ["spec.parts[0].n"])
    assert await merge(words=["x", "z"]) == (422, ["spec.words"])


async def test_rule_with_old_self_judges_unchanged_values_too(http: aiohttp.ClientSession, serve: Serve) -> None:
    url = await serve({"properties": {"n": {"type": "integer"}, "m": {"type": "integer"}},
                       "x-kubernetes-validations": [{"rule": "self.n > oldSelf.n", "message": "n must grow"},
                                                    {"rule": "self.m != 3 || self.n < 0"}]})  # fmt: skip
    async with http.post(url, json=thing(url, "o", {"n": 1, "m": 1})) as answer:
        assert answer.status == 201, await answer.json()
    for labels, n, status in (({"a": "b"}, 1, 422), ({"a": "b"}, 2, 200)):
        headers = {"Content-Type": "application/merge-patch+json"}
        patch = {"metadata": {"labels": labels}, "spec": {"n": n}}
        async with http.patch(f"{url}/o", json=patch, headers=headers) as answer:
            assert answer.status == status, await answer.json()
