"""Eight workers and a limit of three: never four runs in progress, read from the record; and what holds that.

The claim is made slow, so that what is counted and what is taken lie far apart: what keeps the limit then is the one
advisory lock, or nothing. Without it the same test fails, and that is a test too.
"""

import signal
from collections.abc import AsyncIterator

import asyncpg
import pytest

from chaos.fleet import Fleet
from e2e.machine import LONG_LEASE
from e2e.tenant import ANSWER, Tenant
from e2e.waiting import until

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.once("the API takes no part in what is shown"),
]

LIMIT = 3
WORKERS = 8
REGISTERED = "SELECT count(*) FROM worker WHERE started_at > $1"
WITHOUT_LOCK = "import os, tarsy.store.runs.claims; tarsy.store.runs.claims.CLAIM_LOCK += os.getpid()"
"""Each process takes a lock of its own, which locks out nobody."""

SCRIPT = f"agents: {{agent: [{{text: {ANSWER}, tokens: 5, first_token_ms: 50, per_token_ms: 10}}]}}"
SLOW_CLAIM = """
CREATE FUNCTION chaos_slow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(SECONDS);
    RETURN NULL;
END $$;
CREATE TRIGGER chaos_slow AFTER INSERT OR UPDATE ON lease FOR EACH STATEMENT EXECUTE FUNCTION chaos_slow();
"""


@pytest.fixture
async def slow_claims(bare_tenant: Tenant, request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Claims take so many seconds."""
    connection = await asyncpg.connect(bare_tenant.machine.postgres.dsn, server_settings={"search_path": "tarsy"})
    await connection.execute(SLOW_CLAIM.replace("SECONDS", str(request.param)))
    try:
        yield
    finally:
        await connection.execute("DROP FUNCTION chaos_slow CASCADE")
        await connection.close()


async def most_at_once(tenant: Tenant, fleet: Fleet, *, workers: int, runs: int, before: str = "") -> tuple[int, int]:
    """Has so many runs done by so many workers under the limit.

    Returns:
        How many were in progress at the same time, and how often one was claimed, at most.
    """
    await tenant.use_model(SCRIPT)
    await tenant.use_agent()
    await tenant.use_chain(["agent"])
    fleet.controller()
    (moment,) = await tenant.rows("SELECT now()")
    started = [fleet.worker("--global-limit", str(LIMIT), *LONG_LEASE, before=before) for _ in range(workers)]

    async def all_registered() -> bool:
        (found,) = await tenant.rows(REGISTERED, moment["now"])
        return bool(found["count"] == workers)

    await until("all workers are registered", all_registered, 300)
    for worker in started:
        worker.signal(signal.SIGSTOP)
    for number in range(runs):
        await tenant.investigate(f"run-{number}")
    accepted = "SELECT count(*) FROM investigation WHERE namespace = $1"
    await until("all are accepted", lambda: count(tenant, accepted, runs), 300)
    for worker in started:
        worker.signal(signal.SIGCONT)  # they claim at the same time, however slowly each of them started
    ended = f"{accepted} AND state = 'completed'"
    await until("all have ended", lambda: count(tenant, ended, runs), 240 + 2 * runs)
    rows = await tenant.rows(
        "SELECT started_at, finished_at, attempt FROM investigation WHERE namespace = $1", tenant.namespace
    )
    # An end counts before a start of the same moment: who ended made the place.
    changes = sorted([(row["started_at"], 1) for row in rows] + [(row["finished_at"], -1) for row in rows])
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most, max(row["attempt"] for row in rows)


async def count(tenant: Tenant, query: str, wanted: int) -> bool:
    (row,) = await tenant.rows(query, tenant.namespace)
    return bool(row["count"] == wanted)


@pytest.mark.usefixtures("slow_claims")
@pytest.mark.parametrize("slow_claims", [0.1], indirect=True, ids=["tenth"])
async def test_eight_workers_never_have_more_runs_in_progress_than_the_limit(
    bare_tenant: Tenant, fleet: Fleet, full: bool
) -> None:
    runs = 200 if full else 24
    most, claims = await most_at_once(bare_tenant, fleet, workers=WORKERS, runs=runs)
    print(f"\nworkers {WORKERS}, runs {runs}, limit {LIMIT}, most in progress at once {most}, claims of a run {claims}")
    assert (most, claims) == (LIMIT, 1)


@pytest.mark.usefixtures("slow_claims")
@pytest.mark.parametrize("slow_claims", [1.0], indirect=True, ids=["second"])
async def test_without_the_lock_of_the_claim_the_limit_does_not_hold(bare_tenant: Tenant, fleet: Fleet) -> None:
    most, claims = await most_at_once(bare_tenant, fleet, workers=4, runs=12, before=WITHOUT_LOCK)
    print(f"\nwithout the lock: workers 4, limit {LIMIT}, most in progress at once {most}, claims of a run {claims}")
    assert most > LIMIT or claims > 1
