"""Tests calls that wait for people over HTTP: who reads them, what they cite, and decisions with the own token."""

from typing import Any
from uuid import uuid4

import pytest

from integration.http.site import Site, Visitor, uid
from integration.store.build import (
    PROMPT,
    execution,
    model_call,
    model_result,
    new_run,
    stage,
    tool_call,
    tool_result,
    worker,
    writer,
)
from policies import lift_approve, put_approve, wait_until_refused
from tarsy.cli.requests.approvals import read_cited, read_shown
from tarsy.client.direct import DirectClient
from tarsy.client.errors import ApiUseError
from tarsy.record.ids import call_ref
from tarsy.store.approvals import ApprovalRequest, ApprovalStore
from tarsy.store.runs.claims import Claims

DIGEST, OTHER = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
APPROVER = [{"apiGroups": ["tarsy.dev"], "resources": ["toolapprovals"], "verbs": ["get", "list", "patch"]}]
APPROVES = [{"apiGroups": ["tarsy.dev"], "resources": ["mcpservers"], "verbs": ["approve"]}]


async def waiting(site: Site, namespace: str, name: str = "scale", **changed: Any) -> str:
    """A ToolApproval of a run on record that cites the call which the run made; returns the id of that call."""
    pool = site.services.pool
    run = (await site.accepted(namespace, name=f"run-{name}", id=uuid4(), plan=new_run(namespace=namespace).plan)).id
    await Claims(pool).claim(await worker(pool), 10, 1000)
    recorder, begun = writer(pool, run), execution(run)
    await recorder.begin_stage(stage(run))
    await recorder.begin_execution(begun)
    await recorder.model_call_started(model_call(begun.id, new=PROMPT))
    await recorder.model_call_finished(model_result(begun.id), [])
    made = tool_call(begun.id)
    await recorder.tool_call_started(made)
    await recorder.tool_call_finished(tool_result(begun.id, result="x" * 8_193))
    ref = call_ref(made.idempotency_key)
    shown = {
        "call": {"id": "c", "server": "tools", "serverNamespace": namespace, "tool": "scale", "access": "changes"},
        "arguments": "{}",
        "preview": {"kind": "None"},
        "why": {"claim": "Too few.", "evidence": [ref]},
    }
    store = ApprovalStore(pool)
    asked = ApprovalRequest(uuid4(), run, uuid4(), DIGEST, {"shown": shown, "server": {}}, (), None, 600.0, 1)
    await store.ask(asked, 1)
    spec = {
        **shown,
        "runRef": {"name": f"run-{name}", "uid": str(run), "kind": "Investigation"},
        "argumentsDigest": DIGEST,
        "expiresAt": "2126-01-01T00:00:00Z",
        "required": 1,
        "requesters": ["rita"],
        "decisions": [],
    }
    # What the object says that it cites does not count.
    spec["why"] = {"claim": "Too few.", "evidence": [ref, "call_000000000000"]}
    object_uid = uid(await site.put("ToolApproval", namespace, name, spec | changed))
    await store.made(asked.id, str(object_uid))
    return ref


async def test_waiting_calls_are_listed_and_read_with_the_results_that_they_cite(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    ref = await waiting(site, namespace)
    later = {"expiresAt": "2126-01-02T00:00:00Z"}
    for name, phase in (("later", "Pending"), ("done", "Executed")):
        found = await site.services.kube.get("ToolApproval", namespace, "scale")
        await site.put("ToolApproval", namespace, name, found["spec"] | later, phase=phase)
    listed = await administrator.get("/toolapprovals", namespace=namespace)
    assert [one["name"] for one in listed.body["items"]] == ["scale", "later"]
    first = await administrator.get("/toolapprovals", namespace=namespace, decided="true", limit=2)
    rest = {"namespace": namespace, "decided": "true", "limit": 2, "continue": first.body["continue"]}
    assert [one["name"] for one in (await administrator.get("/toolapprovals", **rest)).body["items"]] == ["done"]
    one = (await administrator.get(f"/namespaces/{namespace}/toolapprovals/scale")).body
    assert (one["argumentsDigest"], one["phase"], one["approvals"], one["required"]) == (DIGEST, "Pending", 0, 1)
    cited = (await administrator.get(f"/namespaces/{namespace}/toolapprovals/scale/evidence")).body["items"]
    assert [(c["id"], c["tool"], len(c["result"]), c["truncated"]) for c in cited] == [
        (ref, "kubernetes.get", 8_192, True)
    ]
    assert (await administrator.get(f"/namespaces/{namespace}/toolapprovals/none")).status == 404


async def test_object_that_tarsy_did_not_make_shows_no_result(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await waiting(site, namespace)
    found = await site.services.kube.get("ToolApproval", namespace, "scale")
    await site.put("ToolApproval", namespace, "copy", found["spec"])
    answer = await administrator.get(f"/namespaces/{namespace}/toolapprovals/copy/evidence")
    assert answer.status == 404 and "has no record" in answer.message


async def test_decision_is_written_in_the_name_of_the_caller_and_about_what_was_shown(
    site: Site, namespace: str
) -> None:
    await waiting(site, namespace)
    anna = await site.visitor(namespace, "anna", here=APPROVER)
    path = f"/namespaces/{namespace}/toolapprovals/scale/decisions"
    stale = await anna.post(path, {"decision": "Approve", "argumentsDigest": OTHER})
    assert stale.status == 409 and "is not what you were shown" in stale.message
    assert (await anna.post(path, {"decision": "Maybe", "argumentsDigest": DIGEST})).status == 400
    told = await anna.post(path, {"decision": "Reject", "argumentsDigest": DIGEST, "reason": "not now"})
    assert told.status == 201, told.body
    stored = (await site.services.kube.get("ToolApproval", namespace, "scale"))["spec"]["decisions"]
    assert [(one["username"], one["decision"], one["reason"]) for one in stored] == [
        (anna.username, "Reject", "not now")
    ]
    again = await anna.post(path, {"decision": "Approve", "argumentsDigest": DIGEST})
    assert again.status == 409 and "you have already decided about" in again.message
    await waiting(site, namespace, "own", requesters=[anna.username])
    own = await anna.post(path.replace("scale", "own"), {"decision": "Approve", "argumentsDigest": DIGEST})
    assert own.status == 409 and "so you cannot approve its calls" in own.message
    tess = await site.visitor(namespace, "tess", here=[APPROVER[0] | {"verbs": ["get", "list"]}])
    refused = await tess.post(path.replace("scale", "own"), {"decision": "Reject", "argumentsDigest": DIGEST})
    assert refused.status == 403


@pytest.mark.newer_api
async def test_sentence_of_the_policy_reaches_the_caller(site: Site, namespace: str) -> None:
    kube = site.services.kube
    await waiting(site, namespace)
    path = f"/namespaces/{namespace}/toolapprovals/scale/decisions"
    body = {"decision": "Approve", "argumentsDigest": DIGEST}
    anna = await site.visitor(namespace, "anna", here=APPROVER)
    ben = await site.visitor(namespace, "ben", here=[*APPROVER, *APPROVES])
    await put_approve(kube)
    try:
        forged = {"decisions": [{"username": "x", "decision": "Reject", "argumentsDigest": DIGEST}]}
        await wait_until_refused(kube, "tarsy-approve", ("ToolApproval", namespace, "scale"), forged)
        refused = await anna.post(path, body)
        assert refused.status == 403 and f"{anna.username} may not approve calls of MCPServer tools" in refused.message
        assert refused.message.startswith("system:serviceaccount")
        told = await ben.post(path, body)
        assert told.status == 201 and told.body["approvals"] == 1, told.body
    finally:
        await lift_approve(kube, namespace)


async def test_plugin_decides_with_a_token_too(site: Site, namespace: str) -> None:
    await waiting(site, namespace)
    anna = await site.visitor(namespace, "anna", here=APPROVER)
    token = anna.session.headers["Authorization"].removeprefix("Bearer ")
    async with DirectClient(site.base, token, namespace) as door:
        (item,) = await door.approvals(namespace, decided=False)
        shown = await read_shown(door, namespace, item.name)
        assert isinstance(await read_cited(door, shown), str), "the role of evidence is another one"
        written = await door.decide(shown, "Approve", None)
        assert (written.approvals, written.decisions[0].username) == (1, anna.username)
        with pytest.raises(ApiUseError, match="you have already decided about"):
            await door.decide(shown, "Reject", None)
        with pytest.raises(ApiUseError, match="there is no ToolApproval"):
            await read_shown(door, namespace, "none")
