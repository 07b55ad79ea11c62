"""Tests the scores of investigations and suites over HTTP and in commands, and requests with the caller's own token."""

from decimal import Decimal
from uuid import UUID

import pytest

from integration.http.site import Site, Visitor
from integration.http.test_reviews import ended, token_of
from tarsy.cli.reports.scores import ask_again, ask_suite_again, show_score, show_suite
from tarsy.client.direct import DirectClient
from tarsy.client.errors import ApiUseError
from tarsy.record.judging.score import FailureTag, MissingTool, Score
from tarsy.resources.v1alpha1.scoring import SCORE_REQUEST
from tarsy.store.judging.scores import EndedScore, ScoreReservation, Scores

READER = [
    {"apiGroups": ["record.tarsy.dev"], "resources": ["investigations/score", "evalsuites/scores"], "verbs": ["get"]}
]
PATCHER = [{"apiGroups": ["tarsy.dev"], "resources": ["investigations", "evalsuites"], "verbs": ["get", "patch"]}]
SCORE = Score(
    40,
    "A part is not shown.",
    ("exit code 137",),
    (FailureTag.MISSED_EVIDENCE,),
    (MissingTool("metrics", "Memory over <b>time</b>."),),
)
SPEC = {
    "judge": {"llmProviderRef": {"name": "judge"}, "checklist": [{"name": "a", "question": "b"}]},
    "scoring": {"enabled": True, "chains": ["crashloop"], "budget": {"tokens": 9_000, "costUSD": 2}},
}


async def scored(site: Site, namespace: str, score: Score = SCORE) -> UUID:
    """A suite that has scored the investigation `one`; its uid."""
    await ended(site, namespace, "one")
    made = await site.put("EvalSuite", namespace, "shop", SPEC)
    suite, scores = UUID(made["metadata"]["uid"]), Scores(site.services.pool)
    await scores.enroll(suite, await site.uid_of(namespace), "shop", "j1")
    await site.services.pool.execute("UPDATE scoring SET since = '2020-01-01'")
    await scores.pick(suite, await chains(site), 100)
    item = await scores.next(suite)
    assert item is not None
    day = ScoreReservation(9_000, Decimal(2))
    attempt = await scores.begin(suite, item, "j1", ScoreReservation(1_000, Decimal("0.1")), day, 60)
    assert isinstance(attempt, int)
    done = EndedScore(score, tokens=300, cost_usd=Decimal("0.03"))
    await scores.end(suite, item, attempt, done, again_seconds=None, rates=True)
    return suite


async def chains(site: Site) -> list[str]:
    rows = await site.services.pool.fetch("SELECT DISTINCT chain FROM investigation")
    return [row["chain"] for row in rows]


async def finish_object(site: Site, namespace: str) -> None:
    """The operator has published the end of the investigation `one`."""
    condition = {
        "type": "Finished",
        "status": "True",
        "reason": "Succeeded",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"conditions": [condition], "finding": {"summary": "The image is gone.", "confidence": "High"}}
    await site.services.kube.patch("Investigation", namespace, "one", {"status": status}, subresource="status")


async def test_scores_of_an_investigation_and_of_a_suite_are_read(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await scored(site, namespace)
    found = (await administrator.get(f"/namespaces/{namespace}/investigations/one/score")).body
    (one,) = found["scores"]
    assert (one["points"], one["tags"], one["quotes"], one["current"]) == (40, ["MissedEvidence"], 1, True)
    assert (one["suite"], one["tokens"], one["costUSD"], one["request"]) == ("shop", 300, 0.03, None)
    assert "exit code 137" not in str(found)  # a quote of a tool's result: traces are another right
    suite = (await administrator.get(f"/namespaces/{namespace}/evalsuites/shop/scores")).body
    assert (suite["scored"], suite["tokensToday"], suite["tokensBudget"], suite["judge"]) == (1, 300, 9_000, "j1")
    assert (suite["costUSDToday"], suite["costUSDBudget"], suite["scoring"]) == (0.03, 2, True)
    (chain,) = suite["chains"]
    assert (chain["mean"], chain["scores"], chain["tags"]) == (40, 1, [{"tag": "MissedEvidence", "scores": 1}])
    assert chain["missingTools"][0]["name"] == "metrics"
    stranger = await site.visitor(namespace, "eve", here=PATCHER)
    assert (await stranger.get(f"/namespaces/{namespace}/investigations/one/score")).status == 403
    assert (await stranger.get(f"/namespaces/{namespace}/evalsuites/shop/scores")).status == 403


async def test_another_score_is_asked_for_with_the_callers_own_token(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await scored(site, namespace)
    path = f"/namespaces/{namespace}/investigations/one/score"
    early = await administrator.post(path, {})
    assert (early.status, "has not ended" in early.body["error"]["message"]) == (409, True)
    await finish_object(site, namespace)
    viewer = await site.visitor(namespace, "vera", here=READER)
    assert (await viewer.post(path, {})).status == 403
    anna = await site.visitor(namespace, "anna", here=PATCHER)
    assert (await anna.post(path, {})).status == 202
    there = await site.services.kube.get("Investigation", namespace, "one")
    assert there["metadata"]["annotations"][SCORE_REQUEST].endswith("Z")
    assert (await anna.post(f"/namespaces/{namespace}/investigations/none/score", {})).status == 404
    suite = f"/namespaces/{namespace}/evalsuites/shop/scores"
    assert (await anna.post(suite, {"days": 31})).status == 400
    assert (await viewer.post(suite, {"days": 3})).status == 403
    assert (await anna.post(suite, {"days": 3})).status == 202
    spec = (await site.services.kube.get("EvalSuite", namespace, "shop"))["spec"]
    assert spec["scoring"]["rescore"]["days"] == 3
    await site.services.kube.patch("EvalSuite", namespace, "shop", {"spec": {"scoring": {"enabled": False}}})
    assert (await anna.post(suite, {"days": 3})).status == 409


async def test_commands_print_scores_and_ask_for_others(
    site: Site, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await scored(site, namespace)
    anna = await site.visitor(namespace, "anna", here=[*PATCHER, *READER])
    async with DirectClient(site.base, token_of(anna), namespace) as client:
        assert await show_score(client, namespace, "one", "text") == 0
        shown = capsys.readouterr().out
        assert "40 of 100  by suite shop" in shown and "tags: MissedEvidence" in shown
        assert "missing tool: metrics: Memory over <b>time</b>." in shown and "1 quote, 1 call, 300 tokens" in shown
        assert await show_suite(client, namespace, "shop", "text") == 0
        shown = capsys.readouterr().out
        assert "mean 40, lowest 40, of 1 investigations" in shown and "300 of 9,000 tokens, $0.0300 of $2" in shown
        with pytest.raises(ApiUseError, match="has not ended"):
            await ask_again(client, namespace, "one")
        await finish_object(site, namespace)
        assert await ask_again(client, namespace, "one") == 0
        assert await ask_suite_again(client, namespace, "shop", 7) == 0
        assert "scores of the last 7 days are asked for" in capsys.readouterr().out
