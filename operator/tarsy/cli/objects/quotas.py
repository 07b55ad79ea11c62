"""Lists InvestigationQuotas (`kubectl tarsy quota`)."""

from collections.abc import Sequence
from datetime import UTC
from functools import partial

from rich.table import Table
from rich.text import Text

from tarsy.cli.output import Output, place_of_list, write_list
from tarsy.client.api import TarsyClient
from tarsy.client.plain_text import one_line
from tarsy.http.views.quotas import QuotaLimitView, QuotaView

_TITLES = ("NAME", "PERIOD", "LIMIT", "SPENT", "RESERVED", "USE", "ENDS", "STATE")
_BAR = 20


async def list_quotas(client: TarsyClient, namespace: str | None, output: Output) -> int:
    """Prints the quotas; returns the exit status.

    Args:
        client: the API.
        namespace: of the quotas; None: all.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: they may not be read.
    """
    found = await client.quotas(namespace)
    empty = f"No quotas in {place_of_list(namespace)}: spending is not limited."
    write_list(found, output, partial(quota_table, with_namespace=namespace is None), empty)
    return 0


def quota_table(quotas: Sequence[QuotaView], *, with_namespace: bool) -> Table:
    """Returns the table of quotas for people, with a line for each limit.

    Args:
        quotas: the quotas.
        with_namespace: whether a column names the namespaces.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (*(["NAMESPACE"] if with_namespace else []), *_TITLES):
        table.add_column(title, overflow="fold", no_wrap=title == "USE")
    for quota in quotas:
        ends = "-" if quota.ends is None else f"{quota.ends.astimezone(UTC):%Y-%m-%d %H:%M}Z"
        whose = [quota.namespace] if with_namespace else []
        if not quota.limits:
            cells = [*whose, quota.name, quota.period, "-", "-", "-", "-", ends, _state(quota)]
            table.add_row(*(Text(one_line(cell, 300)) for cell in cells))
        for number, limit in enumerate(quota.limits):
            named = [*whose, quota.name, quota.period] if number == 0 else [""] * (len(whose) + 2)
            figures = [_amount(limit, limit.hard), _amount(limit, limit.spent), _amount(limit, limit.reserved)]
            if limit.name == "investigations":
                figures[2] = "-"  # they are counted when they start
            last = [ends, _state(quota)] if number == 0 else ["", ""]
            table.add_row(*(Text(one_line(cell, 300)) for cell in (*named, *figures, use_bar(limit), *last)))
    return table


def use_bar(limit: QuotaLimitView) -> str:
    """Draws what is spent (#) and reserved (+) of a limit, with the percentage of both."""
    used = limit.spent + limit.reserved
    share = 1.0 if limit.hard <= 0 else min(used / limit.hard, 1.0)
    spent = 1.0 if limit.hard <= 0 else min(limit.spent / limit.hard, 1.0)
    done, held = int(spent * _BAR), int(share * _BAR) - int(spent * _BAR)
    return f"[{'#' * done}{'+' * held}{'.' * (_BAR - done - held)}] {int(share * 100)}%"


def _state(quota: QuotaView) -> str:
    if quota.ready is None:
        return "not checked yet"
    if not quota.ready:
        told = next((one for one in quota.conditions if one.type == "Ready"), None)
        return f"{told.reason}: {told.message}" if told else "not ready"
    if quota.exceeded:
        return f"exceeded: {quota.on_exceeded}"
    return "warned" if quota.warned else "within"


def _amount(limit: QuotaLimitView, value: float) -> str:
    if limit.name == "dollars":
        return f"US$ {value:,.4f}".rstrip("0").rstrip(".")
    return f"{value:,.0f} {limit.name}"
