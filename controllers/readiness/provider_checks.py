"""Checks whether providers accept their key and know their model, and keeps the last result.

A reconcile happens at every change of anything that is named, and of the status itself, so what was asked is kept: a
provider is asked again when its spec or its key changed, and else now and then, each at a time of its own, so that
hundreds of them do not ask together. The key is kept as a digest only.
"""

import hashlib
import random
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tarsy.llm.probe import probe
from tarsy.llm.probe_requests import Probed
from tarsy.plan.builtin import usual_client
from tarsy.plan.model import AgentLimits, Backend, ObjectRef, ProviderPlan
from tarsy.plan.parts import provider_plan
from tarsy.plan.timeouts import call_timeouts
from tarsy.resources.v1alpha1.llm_provider import LLMProvider

USABLE_SECONDS = 600.0
UNUSABLE_SECONDS = 60.0
KEPT = 4096

_Ask = Callable[[ProviderPlan, str | None], Awaitable[Probed]]


@dataclass(frozen=True, slots=True)
class _Known:
    asked: str
    until: float
    found: Probed


def provider_plan_of(provider: LLMProvider) -> ProviderPlan:
    """Makes the plan of a provider that no agent uses."""
    meta, spec = provider.metadata, provider.spec
    ref = ObjectRef(
        kind=provider.KIND, namespace=meta.namespace, name=meta.name, uid=meta.uid or "", generation=meta.generation
    )
    backend = usual_client(spec.type, Backend(spec.backend) if spec.backend else None)
    timeouts = call_timeouts(provider, AgentLimits())
    return provider_plan(provider, ref).model_copy(update={"backend": backend, "timeouts": timeouts})


class ProviderChecks:
    """Checks providers, not more often than needed.

    Args:
        ask: asks one.
        clock: monotonic seconds.
        chance: a number from 0 to 1, at each call.
    """

    def __init__(
        self,
        ask: _Ask = probe,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._chance = chance
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def __call__(self, provider: LLMProvider, key: str | None) -> tuple[Probed, float]:
        """Returns the result of the last check, and the seconds until the next."""
        plan = provider_plan_of(provider)
        same = plan.model_copy(
            update={"limits": None, "timeouts": None, "ref": plan.ref.model_copy(update={"generation": 0})}
        )
        asked = hashlib.sha256(f"{same.model_dump_json()}\n{key or ''}".encode()).hexdigest()
        known = self._known.get(plan.ref.uid)
        if known is None or known.asked != asked or known.until <= self._clock():
            found = await self._ask(plan, key)
            wait = (UNUSABLE_SECONDS if found.reason else USABLE_SECONDS) * (0.9 + self._chance() / 5)
            known = _Known(asked, self._clock() + wait, found)
            self._known[plan.ref.uid] = known
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return known.found, max(0.0, known.until - self._clock())
