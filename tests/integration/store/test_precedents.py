"""Tests which finished investigations are found as precedents, and that erased ones are gone."""

from dataclasses import replace
from uuid import UUID, uuid4

import asyncpg
import pytest

from integration.store.build import new_run, next_attempt, plan, worker
from tarsy.evidence.alert_words import alert_words
from tarsy.observe.metric_table import PRECEDENT_SEARCHES, PRECEDENTS_TOLD
from tarsy.observe.metrics import Metrics
from tarsy.record.finding import Citation, Claim, Confidence, Finding
from tarsy.record.judging.precedent import PrecedentEnding, PrecedentMatch
from tarsy.record.judging.review import ReviewAction, ReviewActivity, ReviewVerdict
from tarsy.record.run import RunOutcome, State
from tarsy.store.errors import StoreError
from tarsy.store.judging.replays import Replays
from tarsy.store.judging.reviews import Reviews
from tarsy.store.reading.precedents import MOST_CANDIDATES, PrecedentQuery, PrecedentSearch, precedent_keys
from tarsy.store.reading.trace import Trace
from tarsy.store.retention import Retention
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.sealing.sealed_record import SealedRecord

TYPE = plan().alert_type
CHECKOUT = '{"labels": {"deployment": "checkout", "namespace": "team-a"}}'
NOW = new_run(name="now")


async def ended(
    pool: asyncpg.Pool,
    name: str,
    *,
    alert: str = CHECKOUT,
    key: str | None = None,
    namespace: str = "team-a",
    confidence: Confidence = Confidence.HIGH,
    state: State = State.COMPLETED,
    blames: str = "",
    summary: str = "The image does not exist.",
) -> UUID:
    """A run that ended with a finding."""
    words = alert_words(alert)
    run = replace(
        new_run(name=name, namespace=namespace), alert_data=alert, keys=precedent_keys(TYPE, key, words.workload)
    )
    await Runs(pool).accept(run)
    (claimed,) = await Claims(pool).claim(await worker(pool), 1, 1000)
    claims = (Claim(text=f"{blames} was changed", supported=True),) if blames else ()
    finding = Finding(summary=summary, confidence=confidence, claims=claims)
    await Runs(pool).finish(claimed.id, claimed.attempt, RunOutcome(state, finding=finding, final_analysis=summary))
    return run.id


def query(alert: str = CHECKOUT, key: str | None = None, **more: object) -> PrecedentQuery:
    words = alert_words(alert)
    of = PrecedentQuery(NOW.id, "team-a", "uid-of-team-a", TYPE, key, words.workload, words.entities, words.words)
    return replace(of, **more)  # type: ignore[arg-type]


async def found(pool: asyncpg.Pool, of: PrecedentQuery) -> list[tuple[str, PrecedentMatch]]:
    return [(one.name, one.match) for one in await PrecedentSearch(pool).find(of)]


async def reviewed(pool: asyncpg.Pool, run: UUID, verdict: ReviewVerdict) -> None:
    said = ReviewActivity("review", "jane", ReviewAction.COMPLETED, verdict)
    assert await Reviews(pool).note(run, uuid4(), said) is not None


async def test_incident_then_workload_then_words(pool: asyncpg.Pool) -> None:
    await ended(pool, "words", alert="Errors of checkout", summary="Deployment checkout was scaled to zero.")
    await ended(pool, "workload")
    await ended(pool, "incident", alert="quite another text", key="k-1")
    await ended(pool, "none", alert="deployment=cart is down")
    assert await found(pool, query(key="k-1")) == [
        ("incident", PrecedentMatch.INCIDENT),
        ("workload", PrecedentMatch.WORKLOAD),
        ("words", PrecedentMatch.WORDS),
    ]


async def test_an_alert_without_names_finds_those_of_its_type_by_words(pool: asyncpg.Pool) -> None:
    await ended(pool, "other", alert="certificates expire")
    await ended(pool, "same", alert="payments are slow since the release")
    assert [name for name, _ in await found(pool, query("payments are slow"))] == ["same", "other"]


async def test_the_object_that_was_changed_and_blamed_before_is_found_where_it_may_be_read(pool: asyncpg.Pool) -> None:
    await ended(pool, "blamed", alert="deployment=cart is down", blames="ConfigMap/shop-settings")
    await pool.execute(
        "INSERT INTO object_head (uid, namespace_uid, namespace, kind, name, seq, digest, key_id, resource_version,"
        " form, changed_at) VALUES ('u', 'uid-of-team-a', 'team-a', 'ConfigMap', 'shop-settings', 1, '', '', '1', '',"
        " now() - interval '10 minutes')"
    )
    changed = query(changed_kinds=("ConfigMap",), changed_seconds=3600)
    (one,) = await PrecedentSearch(pool).find(changed)
    assert (one.name, one.match, one.matched) == (
        "blamed",
        PrecedentMatch.CHANGED_OBJECT,
        "ConfigMap/shop-settings",
    )
    assert not await found(pool, query(changed_kinds=("Secret",), changed_seconds=3600))
    assert not await found(pool, query(changed_kinds=("ConfigMap",), changed_seconds=60))
    assert not await found(pool, query())


async def test_runs_without_a_finding_that_says_something_are_none(pool: asyncpg.Pool) -> None:
    await ended(pool, "inconclusive", confidence=Confidence.INCONCLUSIVE)
    await ended(pool, "failed", state=State.FAILED)
    await Runs(pool).accept(replace(new_run(name="waiting"), keys=precedent_keys(TYPE, None, "checkout")))
    assert await found(pool, query()) == []


async def test_a_strangers_namespace_never_appears(pool: asyncpg.Pool) -> None:
    await ended(pool, "theirs", namespace="team-b", key="k-1")
    assert await found(pool, query(key="k-1")) == []
    assert await found(pool, query(key="k-1", granted={"team-b": "uid-of-older-team-b"})) == [], "a deleted namespace"
    assert await found(pool, query(key="k-1", granted={"team-b": "uid-of-team-b"})) == [
        ("theirs", PrecedentMatch.WORDS)
    ]


async def test_how_findings_ended_orders_equal_matches(pool: asyncpg.Pool) -> None:
    right, partly, _, wrong = [await ended(pool, name) for name in ("right", "partly", "unknown", "wrong")]
    await reviewed(pool, wrong, ReviewVerdict.WRONG)
    await reviewed(pool, right, ReviewVerdict.RIGHT)
    await reviewed(pool, partly, ReviewVerdict.PARTLY)
    ranked = await PrecedentSearch(pool).find(query())
    assert [(one.name, one.ending, one.reviewer) for one in ranked] == [
        ("right", PrecedentEnding.CONFIRMED, "jane"),
        ("partly", PrecedentEnding.PARTLY, "jane"),
        ("unknown", PrecedentEnding.UNKNOWN, None),
        ("wrong", PrecedentEnding.REFUTED, "jane"),
    ]


async def test_many_later_refuted_ones_do_not_crowd_out_a_confirmed_one(pool: asyncpg.Pool) -> None:
    await reviewed(pool, await ended(pool, "right"), ReviewVerdict.RIGHT)
    for number in range(MOST_CANDIDATES + 1):
        await reviewed(pool, await ended(pool, f"wrong-{number}"), ReviewVerdict.WRONG)
    assert (await PrecedentSearch(pool).find(query()))[0].name == "right"
    by_words = await PrecedentSearch(pool).find(query(workload=None))
    assert (by_words[0].name, by_words[0].match) == ("right", PrecedentMatch.WORDS)


@pytest.mark.parametrize("number", [MOST_CANDIDATES - 1, MOST_CANDIDATES, MOST_CANDIDATES + 1])
async def test_candidates_are_limited_to_the_latest(pool: asyncpg.Pool, number: int) -> None:
    first = await ended(pool, "first", alert="deployment=checkout ends")
    await pool.execute(
        "INSERT INTO investigation SELECT (jsonb_populate_record(i, jsonb_build_object('id', gen_random_uuid(), "
        "'name', 'copy-' || n))).* FROM investigation i, generate_series(2, $1) n WHERE i.id = $2",
        number,
        first,
    )
    await pool.execute(
        "INSERT INTO precedent_key SELECT i.id, i.namespace_uid, k.key, now() + interval '1 s' FROM investigation i,"
        " precedent_key k WHERE i.name LIKE 'copy-%' AND k.investigation = $1",
        first,
    )
    ranked = await PrecedentSearch(pool).find(query("deployment=checkout"))
    by_key = [one for one in ranked if one.match is PrecedentMatch.WORKLOAD]
    assert len(by_key) == min(number, MOST_CANDIDATES)


@pytest.mark.parametrize(("walked", "enough"), [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3)])
async def test_words_are_found_wherever_they_stand_in_time(
    pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch, walked: int, enough: int
) -> None:
    """Among the latest, beyond them by the index of words, and never in another namespace."""
    for name in ("older", "later"):
        await ended(pool, name, alert="Errors of checkout", summary="Deployment checkout was scaled to zero.")
    await ended(pool, "theirs", namespace="team-b")
    await ended(pool, "unsure", confidence=Confidence.INCONCLUSIVE)
    await ended(pool, "latest", alert="deployment=cart is down")
    monkeypatch.setattr("tarsy.store.reading.precedents._WALKED", walked)
    monkeypatch.setattr("tarsy.store.reading.precedents._ENOUGH", enough)
    names = {name for name, _ in await found(pool, query(workload=None))}
    met = ["later", "older"][: walked - 1]  # the latest run of the namespace is about another workload
    assert names == (set(met) if len(met) >= enough else {"later", "older"})


async def test_an_erased_investigation_is_gone(pool: asyncpg.Pool) -> None:
    await ended(pool, "old")
    assert await found(pool, query())
    await pool.execute("UPDATE investigation SET finished_at = now() - interval '9 days', settled = true")
    await Retention(pool).purge(86_400.0)
    assert await found(pool, query()) == []
    assert await pool.fetchval("SELECT count(*) FROM precedent_key") == 0


async def test_they_are_frozen_with_the_run_and_sealed(pool: asyncpg.Pool) -> None:
    await ended(pool, "before")
    (one,) = await PrecedentSearch(pool).find(query())
    told = one.model_copy(update={"score": 0.0})
    run, metrics = replace(new_run(), precedents=[one]), Metrics()
    await Runs(pool, metrics=metrics).accept(run)
    assert metrics.value(PRECEDENTS_TOLD, ending="Unknown") == 1
    owner = await worker(pool)
    (claimed,) = await Claims(pool).claim(owner, 1, 1000)
    assert claimed.precedents == (told,)
    await pool.execute("DELETE FROM investigation WHERE name = 'before'")
    attempt = await next_attempt(pool, run.id, owner)
    assert attempt == 2
    given = await Trace(pool).given(run.id)
    assert given is not None and given.precedents == (told,)
    source = await Replays(pool).source(run.id)
    assert source is not None and source.run.precedents == (told,)
    (report,) = await SealedRecord(pool).check(run.id)
    assert report.flaws == []
    await pool.execute(
        "UPDATE investigation_input SET precedents = jsonb_set(precedents, '{0,summary}', '\"Else.\"') "
        "WHERE investigation = $1",
        run.id,
    )
    (report,) = await SealedRecord(pool).check(run.id)
    assert [flaw.where for flaw in report.flaws] == ["precedents"]


async def test_a_search_that_fails_is_counted(pool: asyncpg.Pool) -> None:
    metrics = Metrics()
    await pool.execute("ALTER TABLE precedent_key RENAME TO elsewhere")
    with pytest.raises(StoreError):
        await PrecedentSearch(pool, metrics=metrics).find(query())
    assert metrics.value(PRECEDENT_SEARCHES, outcome="failed") == 1


async def test_texts_of_any_kind_are_no_syntax(pool: asyncpg.Pool) -> None:
    for text in ("'", "a'b & !c | (", "\\", "é ü", "<->", "a:*"):
        await PrecedentSearch(pool).find(query(alert_type=text, entities=(text,), words=(text,), workload=text))


async def test_names_in_claims_without_support_are_no_keys(pool: asyncpg.Pool) -> None:
    citation = Citation(call_id="c", quote="Secret/db was rotated")
    finding = Finding(
        summary="s",
        confidence=Confidence.LOW,
        claims=(
            Claim(text="Deployment/checkout was changed", citations=(citation,), supported=True),
            Claim(text="Node/a is full", supported=False),
        ),
    )
    assert await pool.fetch("SELECT * FROM blamed_objects($1::jsonb) ORDER BY 1", finding.model_dump(mode="json")) == [
        ("object:Deployment/checkout",),
        ("object:Secret/db",),
    ]
    for odd in ({}, {"claims": None}, {"claims": "x"}, {"claims": [1, {"supported": True}]}):
        assert await pool.fetch("SELECT * FROM blamed_objects($1::jsonb)", odd) == []


async def test_what_became_of_the_incident_is_told_beside_the_verdict(pool: asyncpg.Pool) -> None:
    run = await ended(pool, "by-workload")
    await ended(pool, "by-words", alert="Errors of checkout", summary="Deployment checkout was scaled to zero.")
    await pool.execute("UPDATE investigation SET incident_outcome = 'Recurred'")
    found = await PrecedentSearch(pool).find(query())
    assert [(one.outcome, one.ending) for one in found] == [("Recurred", PrecedentEnding.UNKNOWN)] * 2
    await pool.execute("UPDATE investigation SET incident_outcome = NULL WHERE id = $1", run)
    assert (await PrecedentSearch(pool).find(query()))[0].outcome is None
