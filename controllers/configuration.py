"""Chain, Agent, MCPServer, LLMProvider, InvestigationDefaults: can it be used?

Watches: the five configuration kinds. Decides: whether all that an object names is there and fits, whether the Secrets
it names can be read, and whether an LLMProvider's server knows its key and its model. Writes: the condition `Ready`
with every error at once, by field path. The five are one controller, because the question is one; what differs between
the kinds is in `tarsy.plan.check`.

Secrets are not watched (DESIGN section 3), so an object that names some is looked at again now and then.
"""

from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime

from tarsy.controllers.cache import Cache
from tarsy.controllers.masking import masking_errors
from tarsy.controllers.probing import Probes
from tarsy.controllers.status import write_status
from tarsy.kube.client import KubeClient
from tarsy.llm.registry import SecretProblem
from tarsy.plan.check import check, secrets
from tarsy.plan.errors import At, PlanError
from tarsy.plan.model import SecretKey
from tarsy.resources.meta import AnyResource, Condition, set_condition
from tarsy.resources.v1alpha1.common import ConditionType, ConfigStatus
from tarsy.resources.v1alpha1.llm_provider import LLMProvider

RECHECK_SECONDS = 30.0
"""How soon a Secret that was created or labelled later makes its object Ready."""

SETTLED_RECHECK_SECONDS = 300.0
"""How soon a Secret that was deleted is noticed; its next use notices at once."""

ReadSecret = Callable[[SecretKey], Awaitable[str]]


async def reconcile(
    obj: AnyResource, cache: Cache, client: KubeClient, read_secret: ReadSecret, probes: Probes | None = None
) -> float | None:
    """Brings `Ready` up to date; returns after how many seconds to look again, if at all.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
    """
    errors = [(error, "ReferencesInvalid") for error in check(obj, cache)]
    errors += [(error, "MaskingInvalid") for error in masking_errors(obj)]
    named, values = secrets(obj), []
    for key, at in named:
        try:
            values.append(await read_secret(key))
        except SecretProblem as problem:
            errors.append((at.error(problem.message), problem.reason))
    note, waits = "", [RECHECK_SECONDS if errors else SETTLED_RECHECK_SECONDS] if named else []
    if isinstance(obj, LLMProvider) and probes is not None and not errors:
        found, again = await probes(obj, next(iter(values), None))
        note = found.message
        waits.append(again)
        if found.reason is not None:
            errors.append((At.of(obj).error(found.message), found.reason))
    status = judge(obj, errors, datetime.now(UTC), note)
    await write_status(client, cache, obj, status)
    return min(waits, default=None)


def judge(obj: AnyResource, errors: Iterable[tuple[PlanError, str]], now: datetime, note: str = "") -> ConfigStatus:
    """The status that says `errors` (each with a reason), or that there are none, and then `note`."""
    found = list(errors)
    generation = obj.metadata.generation
    reasons = sorted({reason for _, reason in found})
    usable = f"All it names is there. {note}".strip()
    condition = Condition(
        type=ConditionType.READY,
        status="False" if found else "True",
        reason=reasons[0] if found else "Usable",
        message="; ".join(f"{error.field}: {error.message}" for error, _ in found) or usable,
        observed_generation=generation,
    )
    conditions = set_condition(obj.status.conditions, condition, now)
    return ConfigStatus(observed_generation=generation, conditions=conditions)
