"""Tests filters and order of lists of investigations, and that pages neither lose nor repeat entries."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import get_args
from uuid import UUID, uuid4

import asyncpg
import pytest

from integration.databases import EMPTY, create_database
from integration.store.build import claimed_run, event, execution, new_run, stage, writer
from tarsy.record.finding import Confidence, Finding
from tarsy.record.reading.flaws import Flaw
from tarsy.record.reading.listing import InvestigationCount, PagePosition
from tarsy.record.run import DesiredState, RunOutcome, State
from tarsy.store.database import open_pool
from tarsy.store.migrate import migrate, migrations
from tarsy.store.questions import NewQuestion, Questions
from tarsy.store.reading import search
from tarsy.store.reading.search import Filters, Search, Sort, pattern, tsquery
from tarsy.store.runs.lifecycle import Runs
from tarsy_dev.postgres import LocalPostgres

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
FLAWS = 40
HERE = {"team-a": "uid-of-team-a"}
_TOLD = ("finding", "executive_summary", "final_analysis")
SORTS: tuple[Sort, ...] = get_args(Sort)


async def _accepted(
    pool: asyncpg.Pool,
    name: str,
    *,
    minutes: int = 0,
    alert: str = "nothing",
    namespace: str = "team-a",
    **columns: object,
) -> UUID:
    """A run that was accepted so many minutes after noon; columns are set as they are given."""
    run = replace(new_run(name=name, namespace=namespace), alert_data=alert)
    await Runs(pool).accept(run)
    if told := {key: value for key, value in columns.items() if key in _TOLD}:  # as a run's end writes them
        texts = [told.get(key) for key in _TOLD]
        await pool.execute(
            "UPDATE investigation SET finding = $2, executive_summary = $3, final_analysis = $4, finished_at = now()"
            " WHERE id = $1",
            run.id,
            *texts,
        )
    for column, value in {"accepted_at": NOON + timedelta(minutes=minutes), **columns}.items():
        if column in _TOLD:
            continue
        await pool.execute(f"UPDATE investigation SET {column} = $2 WHERE id = $1", run.id, value)  # noqa: S608
    return run.id


async def _names(
    pool: asyncpg.Pool, filters: Filters | None = None, sort: Sort = "newest", limit: int = 50
) -> list[str]:
    page = await Search(pool).page(filters or Filters(), sort, limit)
    return [one.name for one in page.items]


async def _all_pages(pool: asyncpg.Pool, filters: Filters, sort: Sort, limit: int) -> list[UUID]:
    found: list[UUID] = []
    after: PagePosition | None = None
    while True:
        page = await Search(pool).page(filters, sort, limit, after)
        assert len(page.items) <= limit
        found += [one.id for one in page.items]
        if page.next is None:
            return found
        after = page.next


async def test_newest_investigations_come_first(pool: asyncpg.Pool) -> None:
    for minutes, name in enumerate(("first", "second", "third")):
        await _accepted(pool, name, minutes=minutes)
    assert await _names(pool) == ["third", "second", "first"]
    assert await _names(pool, sort="oldest") == ["first", "second", "third"]


async def test_sorted_by_end_cost_and_tokens_the_most_comes_first_and_what_is_unknown_last(pool: asyncpg.Pool) -> None:
    await _accepted(pool, "cheap", finished_at=NOON, state="completed", cost_usd=Decimal("0.01"), input_tokens=500)
    later = NOON + timedelta(hours=1)
    await _accepted(pool, "dear", finished_at=later, state="failed", cost_usd=Decimal(3), input_tokens=10)
    await _accepted(pool, "running", output_tokens=100)
    assert await _names(pool, sort="finished") == ["dear", "cheap"]
    assert await _names(pool, sort="cost") == ["dear", "cheap", "running"]
    assert await _names(pool, sort="tokens") == ["cheap", "running", "dear"]


async def test_the_longest_comes_first_and_what_never_started_last(pool: asyncpg.Pool) -> None:
    start = NOON - timedelta(minutes=3)
    await _accepted(pool, "long", started_at=start, finished_at=NOON, state="completed")
    await _accepted(pool, "longer", started_at=start - timedelta(microseconds=1), finished_at=NOON, state="failed")
    await _accepted(pool, "never started", finished_at=NOON, state="cancelled")
    await _accepted(pool, "running", started_at=start, state="running")
    assert await _names(pool, sort="duration") == ["longer", "long", "never started"]
    assert len(await _all_pages(pool, Filters(), "duration", 1)) == 3


async def test_the_highest_severity_and_confidence_come_first_and_the_newest_of_equal_ones(pool: asyncpg.Pool) -> None:
    told: tuple[tuple[str, str | None, Confidence | None], ...] = (
        ("none", None, None),
        ("info", "Info", Confidence.INCONCLUSIVE),
        ("warning", "Warning", Confidence.LOW),
        ("critical", "Critical", Confidence.MEDIUM),
        ("newer", "Critical", Confidence.HIGH),
        ("later", "Info", Confidence.HIGH),
    )
    for minutes, (name, severity, confidence) in enumerate(told):
        finding = None if confidence is None else Finding(summary="", confidence=confidence).model_dump(mode="json")
        run = await _accepted(pool, name, minutes=minutes, finding=finding)
        await pool.execute("UPDATE investigation_input SET severity = $2 WHERE investigation = $1", run, severity)
    by_severity = ["newer", "critical", "warning", "later", "info", "none"]
    by_confidence = ["later", "newer", "critical", "warning", "info", "none"]
    for sort, names in (("severity", by_severity), ("confidence", by_confidence)):
        assert await _names(pool, sort=sort) == names  # type: ignore[arg-type]
        pages = await _all_pages(pool, Filters(), sort, 1)  # type: ignore[arg-type]
        assert len(set(pages)) == len(pages) == len(names)


@pytest.mark.sweep("another order")
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("limit", [1, 3, 7, 8])
async def test_pages_hold_each_investigation_once_even_where_many_sort_alike(
    pool: asyncpg.Pool, sort: Sort, limit: int
) -> None:
    runs = {
        await _accepted(pool, f"run-{n}", minutes=n // 3, finished_at=NOON, state="completed", cost_usd=Decimal(n % 2))
        for n in range(7)
    }
    found = await _all_pages(pool, Filters(), sort, limit)
    assert len(found) == 7 and set(found) == runs


async def test_what_is_accepted_meanwhile_does_not_shift_the_pages(pool: asyncpg.Pool) -> None:
    for n in range(4):
        await _accepted(pool, f"run-{n}", minutes=n)
    first = await Search(pool).page(Filters(), "newest", 2)
    await _accepted(pool, "later", minutes=60)
    second = await Search(pool).page(Filters(), "newest", 2, first.next)
    assert [one.name for one in (*first.items, *second.items)] == ["run-3", "run-2", "run-1", "run-0"]
    assert second.next is None


async def test_each_filter_keeps_what_it_names(pool: asyncpg.Pool) -> None:
    await _accepted(pool, "queued")
    await _accepted(pool, "failed", minutes=10, state="failed", finished_at=NOON, alert_type="DiskFull", chain="disks")
    names = {
        "failed": [
            Filters(states=(State.FAILED, State.TIMED_OUT)),
            Filters(alert_type="DiskFull"),
            Filters(chain="disks"),
            Filters(chain="disks", chain_namespace="team-a"),
            Filters(since=NOON + timedelta(minutes=10)),
        ],
        "queued": [Filters(states=(State.PENDING,)), Filters(until=NOON + timedelta(minutes=10))],
    }
    for name, filters in names.items():
        for one in filters:
            assert await _names(pool, one) == [name], one
    assert await _names(pool, Filters(chain="disks", chain_namespace="library")) == []
    assert await _names(pool, Filters(author="ada")) == ["failed", "queued"]
    assert await _names(pool, Filters(author="bob")) == []


async def test_each_state_lists_its_runs_also_of_those_that_are_parked_or_woken(pool: asyncpg.Pool) -> None:
    await _accepted(pool, "queued")
    await _accepted(pool, "running", minutes=1, state="running")
    await _accepted(pool, "parked", minutes=2, state="running", parked_at=NOON)
    await _accepted(pool, "woken", minutes=3, state="running", parked_at=NOON, wake_at=NOON - timedelta(days=9999))
    await _accepted(pool, "failed", minutes=4, state="failed", finished_at=NOON)
    pending, running, parked, failed = State.PENDING, State.RUNNING, State.PARKED, State.FAILED
    for states, names in {
        (pending, running, parked): ["woken", "parked", "running", "queued"],
        (pending,): ["woken", "queued"],
        (running,): ["running"],
        (parked,): ["parked"],
        (failed, parked): ["failed", "parked"],
    }.items():
        assert await _names(pool, Filters(states=states)) == names
        assert (await Search(pool).count(Filters(states=states), "newest")).total == len(names)


CITED: dict[str, object] = {"callId": "c", "quote": "It crashed.", "supported": True, "replaced": False}
CLAIM: dict[str, object] = {"text": "It crashed.", "supported": True, "ungrounded": [], "citations": [CITED]}
FLAWED: dict[Flaw, dict[str, object]] = {
    Flaw.UNSUPPORTED_CLAIMS: {"claims": [CLAIM, {**CLAIM, "supported": False}]},
    Flaw.UNGROUNDED_CLAIMS: {"claims": [{**CLAIM, "ungrounded": ["checkout"]}]},
    Flaw.CONTRADICTED_CLAIMS: {"claims": [{**CLAIM, "citations": [{**CITED, "replaced": True}]}]},
    Flaw.UNSTRUCTURED: {"structured": False},
    Flaw.EVIDENCE_DEGRADED: {"no_tool_called": True},
}


@pytest.mark.parametrize("flaw", FLAWED)
async def test_a_flaw_of_the_finding_is_shown_and_filtered_by(pool: asyncpg.Pool, flaw: Flaw) -> None:
    await _accepted(pool, "sound", finding={"summary": "It is known.", "claims": [CLAIM]})
    await _accepted(pool, "flawed", finding={"summary": "It is known.", **FLAWED[flaw]})
    page = await Search(pool).page(Filters(), "newest", 9)
    assert {one.name: tuple(one.flaws) for one in page.items} == {"sound": (), "flawed": (flaw,)}
    assert await _names(pool, Filters(flaws=(flaw,))) == ["flawed"]
    assert await _names(pool, Filters(flaws=tuple(Flaw))) == ["flawed"]
    assert await Search(pool).count(Filters(flaws=(flaw,)), "newest") == InvestigationCount(1, {flaw: 1})
    assert (await Search(pool).count(Filters(), "newest")).flaws == {flaw: 1}


async def test_flaws_of_a_run_are_shown_before_its_end_and_those_of_its_calls_after_it(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    recorder, agent = writer(pool, run), execution(run)
    await recorder.begin_stage(stage(run))
    await recorder.begin_execution(agent)
    await Runs(pool).set_desired_state(run, DesiredState.CONCLUDED)
    insert = (
        "INSERT INTO mcp_interaction (id, execution, message_seq, index, attempt, call_id, server, tool, arguments,"
        " idempotency_key, state, refused) VALUES ($1, $2, 0, $3, 0, 'c', 's', 't', '{}', 'k', 'failed', $4)"
    )
    for index, refused in enumerate(("UntrustedDestination", "ToolNotAccepted", "ToolNotAllowed", None)):
        await pool.execute(insert, uuid4(), agent.id, index, refused)
    (open_one,) = (await Search(pool).page(Filters(flaws=(Flaw.CONCLUDED_EARLY,)), "newest", 9)).items
    assert tuple(open_one.flaws) == (Flaw.CONCLUDED_EARLY,)
    await pool.execute("UPDATE investigation SET state = 'completed', finished_at = now() WHERE id = $1", run)
    (ended,) = (await Search(pool).page(Filters(), "newest", 9)).items
    assert tuple(ended.flaws) == (Flaw.CONCLUDED_EARLY, Flaw.ARGUMENT_REFUSED, Flaw.TOOL_NOT_VERIFIED)


async def test_flaws_are_added_to_records_of_the_version_before_and_a_newer_flaw_is_left_out(
    postgres: LocalPostgres,
) -> None:
    pool = await open_pool(await create_database(postgres.dsn, EMPTY), max_size=2)
    try:
        await migrate(pool, [step for step in migrations() if step.version < FLAWS])
        await pool.execute(
            "INSERT INTO investigation (id, namespace, namespace_uid, name, alert_type, chain, chain_namespace,"
            " plan_hash, stages_planned, limit_seconds, budget_limit, budget_message, state, finished_at) VALUES"
            " ($1, 'n', 'u', 'old', 't', 'c', 'n', 'h', 1, 60, 'Tokens', 'Reached.', 'completed', now())",
            run := uuid4(),
        )
        await pool.execute(
            "INSERT INTO investigation_input (investigation, author, alert_data, plan) VALUES ($1, '{}', 'a', '{}')",
            run,
        )
        await migrate(pool)
        assert await _names(pool, Filters(flaws=(Flaw.BUDGET_REACHED,))) == ["old"]
        await pool.execute("UPDATE investigation SET flaws = flaws || '{FromTheFuture}'")
        (old,) = (await Search(pool).page(Filters(), "newest", 9)).items
        assert (tuple(old.flaws), old.severity, old.alert_key) == ((Flaw.BUDGET_REACHED,), None, None)
    finally:
        await pool.close()


async def test_a_list_knows_severity_and_which_alerts_are_alike(pool: asyncpg.Pool) -> None:
    fired = '{"labels": {"pod": "a"}, "startsAt": "%s"}'
    for name, alert in (("one", fired % "03:00"), ("two", fired % "04:00"), ("other", fired.replace('"a"', '"b"'))):
        await Runs(pool).accept(replace(new_run(name=name), alert_data=alert, severity="Critical"))
    await Runs(pool).accept(replace(new_run(name="mild"), severity="Info"))
    found = {one.name: one for one in (await Search(pool).page(Filters(severities=("Critical",)), "newest", 9)).items}
    assert found.keys() == {"one", "two", "other"}
    assert found["one"].alert_key == found["two"].alert_key != found["other"].alert_key


async def test_a_list_counts_all_pages_up_to_a_limit(pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(3):
        await _accepted(pool, f"run-{n}", minutes=n)
    monkeypatch.setattr(search, "MOST_COUNTED", 2)
    counts = [await Search(pool).count(Filters(words=words), "newest") for words in (None, "run-1")]
    assert [count.total for count in counts] == [2, 1]
    assert await Search(pool).count(Filters(), "finished") == InvestigationCount(0, {})


async def test_a_hit_comes_with_the_text_around_it(pool: asyncpg.Pool) -> None:
    long = f"{'before ' * 40}PAYMENT_API_URL is not set{' after' * 40}"
    run = await _accepted(pool, "one", alert="nothing", finding={"summary": "The pod crashes."}, final_analysis=long)
    (by_words,) = (await Search(pool).page(Filters(words="payment_api_url"), "newest", 9)).items
    assert by_words.excerpt is not None and "PAYMENT_API_URL is not set" in by_words.excerpt
    assert by_words.excerpt.startswith("… ") and by_words.excerpt.endswith(" …")
    assert run == by_words.id
    (by_text,) = (await Search(pool).page(Filters(text="api_url is NOT"), "newest", 9)).items
    assert by_text.excerpt is not None and "PAYMENT_API_URL is not set" in by_text.excerpt
    assert (await Search(pool).page(Filters(), "newest", 9)).items[0].excerpt is None


async def test_a_namespace_shows_nothing_of_its_predecessor_nor_of_others(pool: asyncpg.Pool) -> None:
    await _accepted(pool, "mine")
    await _accepted(pool, "of-the-predecessor", namespace_uid="uid-of-old")
    await _accepted(pool, "of-others", namespace="team-b")
    assert await _names(pool, Filters(namespaces=HERE)) == ["mine"]
    assert set(await _names(pool, Filters(namespaces={**HERE, "team-b": "uid-of-team-b"}))) == {"mine", "of-others"}
    assert len(await _names(pool)) == 3


async def test_answers_to_questions_are_no_investigations(pool: asyncpg.Pool) -> None:
    run = new_run()
    plan = run.plan.model_copy(update={"chat": run.plan.stages[0].agents[0]})
    await Runs(pool).accept(replace(run, plan=plan))
    await Questions(pool).ask(run.id, [NewQuestion(uuid4(), "why", "Why is it nothing?", plan.to_answer())])
    assert await _names(pool) == [run.name]
    assert await _names(pool, Filters(words="nothing")) == []
    assert (await Search(pool).one(run.id)) is not None


async def test_words_are_found_in_name_alert_finding_and_summary(pool: asyncpg.Pool) -> None:
    await _accepted(pool, "in-its-name-zebra")
    await _accepted(pool, "in-alert", alert='{"pod":"checkout-7d4f","reason":"Zebra"}')
    finding = Finding(summary="A zebra did it.", confidence=Confidence.LOW).model_dump(mode="json", by_alias=True)
    await _accepted(pool, "in-finding", finding=finding)
    await _accepted(pool, "in-summary", executive_summary="One ZEBRA.")
    await _accepted(pool, "in-analysis", final_analysis="There was a zebra_crossing")
    await _accepted(pool, "without")
    found = await _names(pool, Filters(words="zebra"))
    assert set(found) == {"in-its-name-zebra", "in-alert", "in-finding", "in-summary", "in-analysis"}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("checkout", True),
        ("check", True),
        ("heckout", False),
        ("checkout-7d4f", True),
        ("checkout-7d", True),
        ("7d4f-checkout", False),
        ("7d4f checkout", True),
        ("checkout payment", False),
        ("/var/log/pods/x", True),
        ("out of memory", True),
        ("out_of_memory", True),
        ("team@shop.example", True),
        ("'; drop table investigation; --", False),
        ("& | ! <-> :*", False),
        ("\\", False),
        ("größe", True),
    ],
)
async def test_words_are_found_by_their_beginnings_and_together_where_written_so(
    pool: asyncpg.Pool, words: str, found: bool
) -> None:
    alert = (
        '{"pod":"checkout-7d4f","path":"/var/log/pods/x","why":"out_of_memory","by":"team@shop.example", "a":"Größe"}'
    )
    await _accepted(pool, "run", alert=alert)
    assert await _names(pool, Filters(words=words)) == (["run"] if found else [])


async def test_a_text_is_found_as_it_stands_in_the_timeline_too(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool, name="told")
    await _accepted(pool, "silent")
    recorder = writer(pool, run)
    await recorder.begin_stage(stage(run))
    await recorder.begin_execution(execution(run))
    await recorder.write_events([event(run, content='the disk is 100% Full_up\\ of "logs"')])
    for text in ("100% full_UP\\", 'of "logs"', "%", "he disk i"):
        assert await _names(pool, Filters(text=text)) == ["told"], text
    assert await _names(pool, Filters(text="100_")) == []
    assert await _names(pool, Filters(words="disk")) == []


async def test_a_page_looks_at_so_many_timelines_and_the_next_goes_on_from_there(
    pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LOOKED_AT", 3)
    wanted = {await _accepted(pool, f"run-{n}", minutes=n, alert="needle") for n in (0, 4)}
    for n in (1, 2, 3, 5, 6, 7):
        await _accepted(pool, f"run-{n}", minutes=n)
    first = await Search(pool).page(Filters(text="needle"), "newest", 5)
    assert first.items == [] and first.next is not None
    assert set(await _all_pages(pool, Filters(text="needle"), "newest", 1)) == wanted


async def test_whatever_is_looked_for_is_looked_for(pool: asyncpg.Pool) -> None:
    await _accepted(pool, "run", alert="a b c")
    chance = random.Random(8)
    alphabet = "ab 'c\\\"&|!()<->:*%_…–\u200b\u0301ßİ漢😀\t\n\x7f"
    for _ in range(150):
        text = "".join(chance.choices(alphabet, k=chance.randint(1, 200)))
        await Search(pool).page(Filters(words=text), "newest", 5)
        await Search(pool).page(Filters(text=text), "newest", 5)


async def test_an_alert_of_any_size_and_kind_can_be_accepted_and_searched(pool: asyncpg.Pool) -> None:
    words = " ".join(f"w{n}" for n in range(60_000))
    texts: Sequence[str] = (words, "x" * 1_000_000, "€" * 300_000, "a " * 400_000, "\u200b\u2028\ufffd" * 1000)
    for number, text in enumerate(texts):
        await _accepted(pool, f"run-{number}", alert=text)
    assert await _names(pool, Filters(words="w17")) == ["run-0"]
    assert await _names(pool, Filters(words="w59999")) == []  # only the beginning is indexed


async def test_progress_and_stage_in_a_list_are_those_of_the_record(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    recorder = writer(pool, run)
    await recorder.begin_stage(stage(run, 0))
    await recorder.begin_stage(stage(run, 1))
    await pool.execute("UPDATE stage SET state = 'completed' WHERE index = 0")
    found = await Search(pool).one(run)
    assert found is not None
    assert (found.stages_finished, found.current_stage, found.stages_planned) == (1, "stage-1", 3)
    assert (found.author, found.state, found.desired_state) == ("ada", State.RUNNING, DesiredState.RUNNING)
    await Runs(pool).finish(run, 1, RunOutcome(State.COMPLETED, final_analysis="done"))
    await Runs(pool).object_deleted(run)
    found = await Search(pool).one(run)
    assert found is not None and found.object_deleted_at is not None and found.state is State.COMPLETED
    assert await Search(pool).one(uuid4()) is None


async def test_what_was_recorded_before_there_was_a_search_is_found_by_its_words(postgres: LocalPostgres) -> None:
    pool = await open_pool(await create_database(postgres.dsn, EMPTY), max_size=2)
    try:
        await migrate(pool, [step for step in migrations() if step.version < 10])
        for name, words, parent in (("older", "the zebra crossed", None), ("an-answer", "a zebra too", "older")):
            await pool.execute(
                "INSERT INTO investigation (id, namespace, namespace_uid, name, alert_type, chain, chain_namespace,"
                " plan_hash, stages_planned, limit_seconds, final_analysis, parent) VALUES (md5($1)::uuid, 'team-a',"
                " 'uid', $1, 'Type', 'chain', 'library', '', 1, 1, 'It was a quagga.', md5($2)::uuid)",
                name,
                parent,
            )
            await pool.execute(
                "INSERT INTO investigation_input VALUES (md5($1)::uuid, '{}', $2, NULL, '')", name, words
            )
        await migrate(pool)
        for word in ("zebra", "quagga", "older"):
            assert await _names(pool, Filters(words=word)) == ["older"], word
    finally:
        await pool.close()


def test_a_query_holds_nothing_but_words_and_our_own_operators() -> None:
    assert tsquery("checkout-7d it's") == "('checkout' <-> '7d':*) & ('it' <-> 's':*)"
    assert tsquery(" -- ") == ""
    assert pattern("50%_\\") == "%50\\%\\_\\\\%"


@pytest.mark.parametrize(
    ("finding", "degraded"),
    [
        (None, False),
        ({"summary": "s"}, False),
        (Finding(summary="s").model_dump(mode="json", by_alias=True), False),
        (Finding(summary="s", no_tool_called=True).model_dump(mode="json", by_alias=True), True),
    ],
)
async def test_a_run_that_called_no_tool_is_listed_with_degraded_evidence(
    pool: asyncpg.Pool, finding: dict[str, object] | None, degraded: bool
) -> None:
    await _accepted(pool, "one", **({"finding": finding} if finding else {}))

    page = await Search(pool).page(Filters(), "newest", 50)

    assert [found.evidence_degraded for found in page.items] == [degraded]
