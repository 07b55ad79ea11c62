"""Tests chains, tools, models, alert types, warnings and usage over HTTP, and who may read them."""

from typing import Any

import pytest

from integration.http.site import Site, Visitor, condition
from integration.store.build import PROMPT, claimed_run, execution, model_call, model_result, stage, worker, writer
from tarsy.store.runs.claims import Claims
from tarsy.store.tool_definitions import DEFINITION_CHARACTERS, DEFINITIONS_KEPT, ToolDefinitions

READY = [condition("Ready", "True")]
CHAIN = {"stages": [{"name": "look", "agents": [{"name": "investigator"}]}]}
SECRET = "do-not-tell"


def _list(*resources: str) -> list[dict[str, list[str]]]:
    return [{"apiGroups": ["tarsy.dev"], "resources": list(resources), "verbs": ["list"]}]


def _chain(*alert_types: str, **more: Any) -> dict[str, Any]:
    return {**CHAIN, "alertTypes": list(alert_types), **more}


async def _server(site: Site, namespace: str, name: str = "tools", **status: Any) -> None:
    http = {
        "url": f"https://tools.example/mcp?token={SECRET}",
        "headers": [{"name": "X-Key", "value": SECRET}],
        "bearerTokenSecretRef": {"name": SECRET, "key": "token"},
    }
    spec = {"description": "Tools.", "transport": {"type": "http", "http": http}}
    await site.put("MCPServer", namespace, name, spec, **status)


async def test_each_kind_is_listed_in_a_few_fields_and_no_secret(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await site.put("Chain", namespace, "crash", _chain("PodCrash", chat={"enabled": False}), conditions=READY)
    await _server(site, namespace, conditions=[*READY, condition("Available", "False")], toolCount=2, tools=["a", "b"])
    provider = {"type": "openai", "model": "m-1", "baseURL": f"https://{SECRET}.example/v1", "rates": _rates()}
    await site.put("LLMProvider", namespace, "model", provider)
    answers = [
        await administrator.get(f"/{kind}", namespace=namespace) for kind in ("chains", "mcpservers", "llmproviders")
    ]
    (chain,), (server,), (model,) = (answer.body["items"] for answer in answers)
    assert (chain["name"], chain["alertTypes"], chain["ready"], chain["takesQuestions"]) == (
        "crash",
        ["PodCrash"],
        True,
        False,
    )
    assert chain["stages"] == [{"name": "look", "agents": ["investigator"], "replicas": 1}]
    assert (server["transport"], server["toolPolicy"], server["available"], server["tools"]) == (
        "http",
        "ReadOnly",
        False,
        ["a", "b"],
    )
    assert (model["type"], model["model"], model["ready"], model["hasRates"]) == ("openai", "m-1", None, True)
    assert not model["hasNativeTools"]
    assert SECRET not in str([answer.body for answer in answers])


async def test_a_list_has_pages_by_name(site: Site, administrator: Visitor, namespace: str) -> None:
    for name in ("c", "a", "b"):
        await site.put("Chain", namespace, name, CHAIN)
    query: dict[str, Any] = {"namespace": namespace, "limit": 2}
    first = (await administrator.get("/chains", **query)).body
    second = (await administrator.get("/chains", **query, **{"continue": first["continue"]})).body
    assert [one["name"] for one in (*first["items"], *second["items"])] == ["a", "b", "c"]
    assert second["continue"] is None
    assert (await administrator.get("/mcpservers", **query, **{"continue": first["continue"]})).status == 400
    assert (await administrator.get("/chains", **{**query, "limit": 201})).status == 400


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/chains", "chains"),
        ("/alert-types", "chains"),
        ("/mcpservers", "mcpservers"),
        ("/warnings", "mcpservers"),
        ("/llmproviders", "llmproviders"),
        ("/usage", "investigations"),
    ],
)
async def test_who_may_list_a_kind_in_a_namespace_names_it(
    site: Site, namespace: str, path: str, resource: str
) -> None:
    viewer = await site.visitor(namespace, "viewer", here=_list(resource))
    assert (await viewer.get(path, namespace=namespace)).status == 200
    assert (await viewer.get(path)).status == 403
    assert (await viewer.get(path, namespace="default")).status == 403
    stranger = await site.visitor(namespace, "stranger", here=_list("alerts"))
    assert (await stranger.get(path, namespace=namespace)).status == 403


async def test_alert_types_are_those_that_the_engine_would_find(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    library = site.services.library_namespace
    await site.put("Chain", namespace, "own", _chain("PodCrash", "DiskFull"), conditions=READY)
    await site.put("Chain", library, "shared", _chain("PodCrash", "NodeDown", allowedNamespaces={"from": "All"}))
    await site.put("Chain", library, "closed", _chain("Secret"))
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    chosen = {"from": "Selector", "selector": selector}
    await site.put("Chain", library, "chosen", _chain("Chosen", allowedNamespaces=chosen))
    body = (await administrator.get("/alert-types", namespace=namespace)).body
    types = {
        one["alertType"]: [(ref["namespace"], ref["name"], ref["ready"]) for ref in one["chains"]]
        for one in body["items"]
    }
    assert types == {
        "Chosen": [(library, "chosen", None)],
        "DiskFull": [(namespace, "own", True)],
        "NodeDown": [(library, "shared", None)],
        "PodCrash": [(namespace, "own", True), (library, "shared", None)],
    }
    assert body["defaultAlertType"] is None and body["defaultChain"] is None
    usual = {"defaultAlertType": "Report", "defaultChain": "shared"}
    await site.put("InvestigationDefaults", namespace, "default", usual)
    body = (await administrator.get("/alert-types", namespace=namespace)).body
    assert body["defaultAlertType"] == "Report"
    assert body["defaultChain"] == {"namespace": library, "name": "shared", "ready": None}
    viewer = await site.visitor(namespace, "viewer", here=_list("chains"))
    body = (await viewer.get("/alert-types", namespace=namespace)).body
    assert (body["defaultAlertType"], body["defaultChain"]) == ("Report", None), "library chains may not be listed"
    assert [one["alertType"] for one in body["items"]] == ["DiskFull", "PodCrash"]
    assert (await viewer.get("/alert-types", namespace=[namespace, library])).status == 400


async def test_what_an_alert_may_bring_is_of_its_namespace_and_of_the_library_that_lets_it(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    library = site.services.library_namespace
    await _server(site, namespace, "own")
    spec = {"transport": {"type": "http", "http": {"url": "https://tools.example/mcp"}}}
    await site.put("MCPServer", library, "shared", {**spec, "allowedNamespaces": {"from": "All"}})
    await site.put("MCPServer", library, "closed", spec)
    asked = {"namespace": namespace, "withLibrary": "true"}
    names = [(one["namespace"], one["name"]) for one in (await administrator.get("/mcpservers", **asked)).body["items"]]
    assert (namespace, "own") in names and (library, "shared") in names and (library, "closed") not in names
    assert [one["name"] for one in (await administrator.get("/mcpservers", namespace=namespace)).body["items"]] == [
        "own"
    ]
    viewer = await site.visitor(namespace, "viewer", here=_list("mcpservers"))
    assert [one["name"] for one in (await viewer.get("/mcpservers", **asked)).body["items"]] == ["own"]


async def test_warnings_tell_of_a_provider_that_does_not_serve_and_of_defaults_that_are_not_ready(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    silent = [*READY, condition("Serving", "False", "ModelUnreachable", "Its last calls failed.")]
    await site.put("LLMProvider", namespace, "model", {"type": "openai", "model": "m"}, conditions=silent)
    broken = [condition("Ready", "False", "ReferencesInvalid", "spec.llmProvider: there is no LLMProvider none.")]
    await site.put("InvestigationDefaults", namespace, "default", {"llmProvider": "none"}, conditions=broken)
    items = (await administrator.get("/warnings", namespace=namespace)).body["items"]
    assert [(one["kind"], one["type"], one["reason"]) for one in items] == [
        ("InvestigationDefaults", "Ready", "ReferencesInvalid"),
        ("LLMProvider", "Serving", "ModelUnreachable"),
    ]


async def test_warnings_tell_what_does_not_hold_of_the_kinds_that_may_be_listed(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    silent = condition("Available", "False", "NoAnswer", "It is silent.")
    withheld = condition("ToolsChanged", "True", "ToolsWithheld", "These tools are withheld: get.")
    await _server(site, namespace, conditions=[*READY, silent, withheld])
    await site.put("Chain", namespace, "fine", CHAIN, conditions=READY)
    broken = [condition("Ready", "False", "Missing", "There is no Agent investigator.")]
    await site.put("Chain", namespace, "broken", CHAIN, conditions=broken)
    body = (await administrator.get("/warnings", namespace=namespace)).body
    assert body["kinds"] == [
        "Agent",
        "AlertRoute",
        "Chain",
        "InvestigationDefaults",
        "LLMProvider",
        "MCPServer",
        "Skill",
    ]
    assert [(one["kind"], one["name"], one["type"], one["reason"], one["message"]) for one in body["items"]] == [
        ("Chain", "broken", "Ready", "Missing", "There is no Agent investigator."),
        ("MCPServer", "tools", "Available", "NoAnswer", "It is silent."),
        ("MCPServer", "tools", "ToolsChanged", "ToolsWithheld", "These tools are withheld: get."),
    ]
    viewer = await site.visitor(namespace, "viewer", here=_list("mcpservers"))
    body = (await viewer.get("/warnings", namespace=namespace)).body
    assert body["kinds"] == ["MCPServer"] and {one["kind"] for one in body["items"]} == {"MCPServer"}


async def test_usage_is_summed_by_what_is_asked_in_the_namespaces_that_are_named(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    pool = site.services.pool
    await claimed_run(pool)  # of another namespace
    run = await site.accepted(namespace)
    await Claims(pool).claim(await worker(pool), 10, 1000)
    recorder, begun = writer(pool, run.id), execution(run.id)
    await recorder.begin_stage(stage(run.id))
    await recorder.begin_execution(begun)
    await recorder.model_call_started(model_call(begun.id, new=PROMPT))
    await recorder.model_call_finished(model_result(begun.id))
    for by, name in (
        ("model", "scripted"),
        ("provider", "local"),
        ("chain", f"{namespace}/crashloop"),
        ("alertType", "KubePodCrashLooping"),
        ("namespace", namespace),
    ):
        body = (await administrator.get("/usage", namespace=namespace, by=by)).body
        assert [(one["name"], one["calls"], one["inputTokens"]) for one in body["items"]] == [(name, 1, 100)]
        assert (body["total"]["calls"], body["omitted"], body["days"]) == (1, 0, 30)
        assert (body["total"]["costUSD"], body["total"]["callsOfUnknownCost"]) == (None, 1)
        daily = (await administrator.get("/usage/days", namespace=namespace, by=by, days=2)).body
        assert [(one["name"], one["calls"], one["findings"]) for one in daily["items"]] == [(name, 1, 0)]
        assert [(one["name"], one["tokens"], one["costUSD"]) for one in daily["series"]] == [
            (name, [0, 120], [0, None])
        ]
        assert (daily["total"]["investigations"], daily["omitted"], daily["timeZone"]) == (1, 0, "UTC")
    (day,) = (await administrator.get("/usage", namespace=namespace, by="day")).body["items"]
    assert len(day["name"].split("-")) == 3
    cases: list[tuple[dict[str, Any], int]] = [
        ({"days": 1}, 200),
        ({"days": 366}, 200),
        ({"days": 0}, 400),
        ({"days": 367}, 400),
        ({"limit": 1000}, 200),
        ({"limit": 1001}, 400),
        ({"by": "author"}, 200),
        ({"by": "nothing"}, 400),
    ]
    for query, status in cases:
        assert (await administrator.get("/usage", **query)).status == status, query
    of_days: list[tuple[dict[str, Any], int]] = [
        ({"days": 366, "series": 20, "limit": 1000, "timeZone": "Europe/Berlin"}, 200),
        ({"days": 367}, 400),
        ({"series": 0}, 400),
        ({"series": 21}, 400),
        ({"limit": 1001}, 400),
        ({"by": "day"}, 400),
        ({"timeZone": "Nowhere/Land"}, 400),
        ({"timeZone": "../../etc/passwd"}, 400),
    ]
    for query, status in of_days:
        assert (await administrator.get("/usage/days", **query)).status == status, query


async def test_quality_contains_only_what_the_caller_may_list(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    whole = (await administrator.get("/quality", namespace=namespace, days=2, timeZone="Asia/Tokyo")).body
    assert (whole["findings"], len(whole["outcomes"]), len(whole["days"])) == ([0, 0], 2, 2)
    assert whole["reviews"]["byConfidence"] == [] and whole["evaluations"] == {"items": [], "more": False}
    lister = [{"apiGroups": ["tarsy.dev"], "resources": ["investigations"], "verbs": ["list"]}]
    part = (await (await site.visitor(namespace, "lister", here=lister)).get("/quality", namespace=namespace)).body
    assert (len(part["findings"]), part["reviews"], part["evaluations"]) == (30, None, None)


def _rates() -> dict[str, float]:
    return {"inputPerMillion": 1.0, "outputPerMillion": 2.0}


async def test_tools_of_a_server_are_told_as_they_are_and_as_they_were(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    old, new = "a" * 64, "b" * 64
    pinned = [{"name": "get", "digest": new, "first": old, "state": "Changed"}]
    await _server(site, namespace, conditions=READY, pinnedTools=pinned)
    uid = (await site.services.kube.get("MCPServer", namespace, "tools"))["metadata"]["uid"]
    known = ToolDefinitions(site.services.pool)
    await known.note(uid, {"get": (old, '["get", "Reads.", {}, {}]')})
    await known.note(uid, {"get": (new, '["get", "Reads and sends.", {}, {}]')})
    body = (await administrator.get(f"/namespaces/{namespace}/mcpservers/tools/tools")).body
    (tool,) = body["tools"]
    assert (tool["name"], tool["state"]) == ("get", "Changed")
    assert "sends" in tool["now"]["definition"] and "sends" not in tool["before"]["definition"]
    assert (tool["now"]["digest"], tool["before"]["digest"]) == (new, old)
    stranger = await site.visitor(namespace, "viewer", here=_list("mcpservers"))
    assert (await stranger.get(f"/namespaces/{namespace}/mcpservers/tools/tools")).status == 403


@pytest.mark.parametrize("kept", [DEFINITIONS_KEPT - 1, DEFINITIONS_KEPT])
async def test_so_many_definitions_of_a_server_are_kept_those_seen_last(site: Site, namespace: str, kept: int) -> None:
    known = ToolDefinitions(site.services.pool)
    await known.note("first", {f"t{number}": (f"{number:064x}", "{}") for number in range(kept)})
    await known.note("first", {"late": ("f" * 64, "x" * 100_000)})
    found = await known.of_server("first")
    assert len(found) == DEFINITIONS_KEPT
    assert len(next(one.definition for one in found if one.tool == "late")) == DEFINITION_CHARACTERS
    await known.forget("first")
    assert await known.of_server("first") == []
