"""Tests when a provider is checked again, and its condition."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tarsy.controllers.readiness.provider_checks import (
    KEPT,
    UNUSABLE_SECONDS,
    USABLE_SECONDS,
    ProviderChecks,
    provider_plan_of,
)
from tarsy.llm.probe_requests import Probed
from tarsy.plan.model import Backend, ProviderPlan
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1 import LLMProvider
from unit.controllers.builders import raw


def provider(uid: str = "u1", **spec: Any) -> LLMProvider:
    return parse_as(LLMProvider, raw("LLMProvider", "one", {"type": "openai", "model": "m", **spec}, uid=uid))


@dataclass
class Bench:
    """Probes over a server that answers as told, at a time that is told."""

    answer: Probed = Probed()  # noqa: RUF009
    now: float = 0.0
    asked: list[str | None] = field(default_factory=list)

    async def ask(self, plan: ProviderPlan, key: str | None) -> Probed:
        self.asked.append(key)
        return self.answer

    def probes(self) -> ProviderChecks:
        return ProviderChecks(self.ask, clock=lambda: self.now, chance=lambda: 0.5)


@pytest.mark.parametrize(
    ("answer", "seconds"), [(Probed(), USABLE_SECONDS), (Probed("CredentialsRejected", "no"), UNUSABLE_SECONDS)]
)
async def test_a_provider_is_asked_again_after_its_time_and_not_before(answer: Probed, seconds: float) -> None:
    bench = Bench(answer)
    probes = bench.probes()
    assert await probes(provider(), "k") == (answer, seconds)
    bench.now = seconds - 1
    assert await probes(provider(), "k") == (answer, 1.0)
    assert len(bench.asked) == 1
    bench.now = seconds
    await probes(provider(), "k")
    assert len(bench.asked) == 2


async def test_a_new_key_and_a_changed_spec_are_asked_at_once() -> None:
    bench = Bench()
    probes = bench.probes()
    await probes(provider(), "old")
    await probes(provider(), "new")
    await probes(provider(model="other"), "new")
    await probes(provider(model="other"), "new")
    assert bench.asked == ["old", "new", "new"]


async def test_hundreds_of_providers_do_not_ask_together() -> None:
    chances = iter([0.0, 1.0])
    probes = ProviderChecks(Bench().ask, clock=lambda: 0.0, chance=lambda: next(chances))
    first, second = [(await probes(provider(uid), None))[1] for uid in ("u1", "u2")]
    assert first == pytest.approx(0.9 * USABLE_SECONDS)
    assert second == pytest.approx(1.1 * USABLE_SECONDS)


async def test_what_is_kept_has_a_limit() -> None:
    bench = Bench()
    probes = bench.probes()
    for number in range(KEPT + 2):
        await probes(provider(f"u{number}"), None)
    await probes(provider("u0"), None)
    assert len(bench.asked) == KEPT + 3


@pytest.mark.parametrize(
    ("spec", "backend"),
    [
        ({"type": "openai"}, Backend.OPENAI_NATIVE),
        ({"type": "openai", "backend": "langchain"}, Backend.LANGCHAIN),
        ({"type": "google"}, Backend.GOOGLE_NATIVE),
    ],
)
def test_a_provider_by_itself_has_the_client_its_type_is_best_with(spec: dict[str, Any], backend: Backend) -> None:
    assert provider_plan_of(provider(**spec)).backend is backend
