"""What the statuses of objects sum up to."""

from datetime import UTC, datetime
from typing import Any

from tarsy.cli.reports.usage import summed

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def run(name: str, cost: str | None, chain: str = "k8s", day: int = 21, **usage: int) -> dict[str, Any]:
    status: dict[str, Any] = {"chain": chain, "chainNamespace": "lib", "alertType": "Disk"}
    status["usage"] = {"modelCalls": 2, "inputTokens": 10, **usage, **({"costUSD": cost} if cost else {})}
    meta = {"namespace": "shop", "name": name, "creationTimestamp": f"2026-11-{day}T00:00:00Z"}
    return {"metadata": meta, "status": status}


def question(name: str, about: str, cost: str) -> dict[str, Any]:
    return {**run(name, cost), "spec": {"investigationRef": {"name": about}}}


def test_questions_count_where_their_investigation_does() -> None:
    (lib, other, unknown) = summed(
        [run("a", "0.5"), run("b", "0.25", toolCalls=3), run("c", "0.1", chain="other")],
        [question("q", "a", "0.25"), question("lost", "gone", "0.05")],
        "chain",
        NOW,
    )
    assert (lib.name, lib.investigations, lib.questions, lib.cost_usd, lib.tool_calls) == ("lib/k8s", 2, 1, 1.0, 3)
    assert (other.name, unknown.name, unknown.questions) == ("lib/other", "(unknown)", 1)


def test_a_cost_that_is_not_known_is_never_zero() -> None:
    (part,) = summed([run("a", "0.5+"), run("b", None)], [], "namespace", NOW)
    assert (part.name, part.cost_usd, part.cost_complete) == ("shop", 0.5, False)
    (nothing,) = summed([run("a", None)], [], "alertType", NOW)
    assert (nothing.name, nothing.cost_usd, nothing.cost_complete) == ("Disk", None, False)


def test_what_is_older_or_has_used_nothing_is_left_out() -> None:
    new = {**run("new", "1"), "status": {}}
    assert summed([run("old", "1", day=19), new], [], "chain", NOW) == []
