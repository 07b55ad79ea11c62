"""Reconciles InvestigationQuotas: publishes their limits to Postgres, and reports their usage.

Watches: InvestigationQuotas; the ledger in Postgres, every 15 seconds. Decides: whether a limit has no room, and
whether the percentage for a warning is reached. Writes: the limits in Postgres, where claims and model calls are
counted; the use of the current period, `Ready`, `Warned`, `Exceeded`; an Event when one of the latter becomes True.

A status is written at most once in 15 seconds, unless the spec or a condition has changed. Enforcement needs neither
this controller nor the Kubernetes API: the ledger is in the transactions of the workers.
"""

import logging
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import ROUND_UP, Decimal

from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.machinery.status import write_status
from tarsy.kube.client import KubeClient
from tarsy.record.quota import SHARES, Period, QuotaLimits, QuotaUsage
from tarsy.resources.meta import Condition, Conditions, condition, set_condition
from tarsy.resources.v1alpha1 import InvestigationQuota, InvestigationQuotaStatus
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.resources.v1alpha1.investigation_quota import QuotaInForce, QuotaReserved, QuotaSpent
from tarsy.store.quotas import Quotas

LOOK_SECONDS = 15.0
"""Seconds between two looks at what is spent, and between two writes of a status."""

GONE_SECONDS = 60.0
"""Seconds between two looks for quotas that were deleted while no controller was active."""

_PERIODS: dict[str, Period] = {"Hour": "hour", "Day": "day", "Week": "week", "Month": "month"}
_log = logging.getLogger(__name__)


async def reconcile(quota: InvestigationQuota, quotas: Quotas, context: ReconcileContext) -> float:
    """Publishes the limits and updates the status; returns the seconds until the next look.

    Args:
        quota: the object.
        quotas: the ledger.
        context: of all reconciles.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
        StoreError: Postgres is unavailable.
    """
    meta = quota.metadata
    used = (await quotas.usage([meta.uid])).get(meta.uid)
    if used is None or used.generation < meta.generation:
        await quotas.publish(meta.uid, meta.namespace, meta.name, meta.generation, quota_limits(quota))
        used = (await quotas.usage([meta.uid])).get(meta.uid)
    if used is None:
        return LOOK_SECONDS
    status = quota_status(quota, used, datetime.now(UTC))
    left = context.quota_written.get(meta.uid, -LOOK_SECONDS) + LOOK_SECONDS - time.monotonic()
    if left > 0 and _is_told(status, quota.status):
        return left
    written = await write_status(context.kubernetes.client, context.cache, quota, status)
    if written is not None:
        context.quota_written[meta.uid] = time.monotonic()
        for told in _news(status.conditions, quota.status.conditions):
            await context.kubernetes.events.tell(quota, told.reason, told.message, kind="Warning")
    return LOOK_SECONDS


async def deleted(uid: str, quotas: Quotas, context: ReconcileContext) -> None:
    """Lifts the limits of a deleted quota.

    Args:
        uid: of the object.
        quotas: the ledger.
        context: of the reconcile.
    """
    context.quota_written.pop(uid, None)
    await quotas.delete(uid)


async def lift_deleted(quotas: Quotas, cache: Cache, client: KubeClient) -> None:
    """Lifts the limits of quotas that were deleted while no controller was active.

    Args:
        quotas: the ledger.
        cache: the objects as they were last seen.
        client: the Kubernetes API, which is asked about each object that the cache does not have.
    """
    for uid, (namespace, name) in (await quotas.published()).items():
        known = cache.get(InvestigationQuota, namespace, name)
        if known is not None and known.metadata.uid == uid:
            continue
        there = await client.find(InvestigationQuota.KIND, namespace, name)
        if there is None or there["metadata"]["uid"] != uid:
            await quotas.delete(uid)
            _log.info("InvestigationQuota %s/%s was deleted; its limits no longer apply", namespace, name)


def quota_limits(quota: InvestigationQuota) -> QuotaLimits:
    """Returns the limits of a quota as the ledger keeps them."""
    hard = quota.spec.hard
    return QuotaLimits(
        period=_PERIODS[quota.spec.period],
        cost_usd=None if hard.dollars is None else Decimal(str(hard.dollars)),
        tokens=hard.tokens,
        investigations=hard.investigations,
        on_exceeded=quota.spec.on_exceeded,
        shares={name: getattr(quota.spec.share, name) for name in SHARES},
    )


def quota_status(quota: InvestigationQuota, used: QuotaUsage, now: datetime) -> InvestigationQuotaStatus:
    """Makes the status of a quota whose limits are in force.

    Args:
        quota: the object as it is, for the transition times of its conditions.
        used: what counts in the current period.
        now: the time of a change, with a time zone.
    """
    hard = quota_limits(quota)
    conditions = quota.status.conditions
    for one in _conditions(quota, hard, used):
        conditions = set_condition(conditions, one, now)
    return InvestigationQuotaStatus(
        observed_generation=quota.metadata.generation,
        conditions=conditions,
        period_start=used.starts_at,
        period_end=used.ends_at,
        spent=QuotaSpent(
            dollars=_dollars(used.spent_usd),
            tokens=used.spent_tokens,
            investigations=used.investigations,
            summary=_summary(hard, used.spent_usd, used.spent_tokens, used.investigations),
        ),
        reserved=QuotaReserved(
            dollars=_dollars(used.reserved_usd),
            tokens=used.reserved_tokens,
            summary=_summary(hard, used.reserved_usd, used.reserved_tokens, None) or "-",
        ),
        hard=QuotaInForce(
            dollars=None if hard.cost_usd is None else _dollars(hard.cost_usd),
            tokens=hard.tokens,
            investigations=hard.investigations,
            summary=_summary(hard, hard.cost_usd, hard.tokens, hard.investigations),
        ),
        refusals=used.refusals,
    )


def _conditions(quota: InvestigationQuota, hard: QuotaLimits, used: QuotaUsage) -> Iterable[Condition]:
    generation, until = quota.metadata.generation, f"{used.ends_at:%Y-%m-%d %H:%M} UTC"
    yield Condition(
        type=ConditionType.READY,
        status="True",
        reason="Enforced",
        message="The limits are in force in all workers.",
        observed_generation=generation,
    )
    near = sorted(_above(quota.spec.warn_at, hard, used))
    yield Condition(
        type=ConditionType.WARNED,
        status="True" if near else "False",
        reason="QuotaNearlySpent" if near else "BelowWarning",
        message=f"At least {quota.spec.warn_at} % of {' and '.join(near)} are spent, until {until}."
        if near
        else f"Less than {quota.spec.warn_at} % of each limit are spent.",
        observed_generation=generation,
    )
    happens = {
        "Queue": "Investigations wait",
        "Reject": "Investigations are rejected",
        "TriageOnly": "Investigations ask no model",
    }[quota.spec.on_exceeded]
    message = "There is room."
    if used.exceeded is not None:
        message = f"The limit of {used.exceeded} is exhausted. {happens} until {until}, or until the limit is raised."
    yield Condition(
        type=ConditionType.EXCEEDED,
        status="False" if used.exceeded is None else "True",
        reason="WithinQuota" if used.exceeded is None else "QuotaSpent",
        message=message,
        observed_generation=generation,
    )


def _above(percent: int, hard: QuotaLimits, used: QuotaUsage) -> Iterable[str]:
    """Yields the limits of which at least this percentage is spent."""
    for name, limit, spent in (
        ("dollars", hard.cost_usd, used.spent_usd),
        ("tokens", hard.tokens, used.spent_tokens),
        ("investigations", hard.investigations, used.investigations),
    ):
        if limit is not None and spent * 100 >= limit * percent:
            yield name


def _is_told(status: InvestigationQuotaStatus, old: InvestigationQuotaStatus) -> bool:
    """Whether the old status has the same conditions and limits, so that the figures can wait."""
    same = [(one.type, one.status) for one in status.conditions] == [(one.type, one.status) for one in old.conditions]
    return same and status.observed_generation == old.observed_generation and status.period_end == old.period_end


def _news(conditions: Conditions, old: Conditions) -> Iterable[Condition]:
    """Yields the warnings that have become True."""
    for kind in (ConditionType.WARNED, ConditionType.EXCEEDED):
        now, before = condition(conditions, kind), condition(old, kind)
        if now is not None and now.status == "True" and (before is None or before.status != "True"):
            yield now


def _summary(hard: QuotaLimits, usd: Decimal | None, tokens: int | None, investigations: int | None) -> str:
    """Returns the amounts that the quota limits, in one line."""
    parts = []
    if hard.cost_usd is not None and usd is not None:
        parts.append(f"${_dollars(usd)}")
    if hard.tokens is not None and tokens is not None:
        parts.append(f"{tokens:,} tokens")
    if hard.investigations is not None and investigations is not None:
        parts.append(f"{investigations:,} run{'' if investigations == 1 else 's'}")
    return ", ".join(parts)


def _dollars(value: Decimal) -> str:
    """Returns US dollars with at least two and at most six decimals, rounded up."""
    whole, _, rest = f"{value.quantize(Decimal('0.000001'), rounding=ROUND_UP):f}".partition(".")
    return f"{whole}.{rest.rstrip('0'):0<2}"
