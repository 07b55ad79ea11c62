"""Prints evidence that is computed from the objects of the cluster (`changes`, `triage`), without a model.

Everything is read with the user's own kubeconfig, so nobody sees more than kubectl would show. Decision: what could not
be read is part of the answer, because "no fault was found" means little when pods could not be listed.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import Field
from rich.table import Table

from tarsy.cli.output import Output, beside, for_programs, printer, write_output
from tarsy.client.errors import ApiUseError
from tarsy.client.plain_text import one_line
from tarsy.evidence.changes.ranking import Order, RankedChange
from tarsy.evidence.reading import METADATA_LIST, CannotRead, read_snapshot
from tarsy.evidence.report import ChangeReport, find_changes, find_faults, gaps_text
from tarsy.evidence.rules.signal import Certainty, Signal
from tarsy.evidence.snapshot import Gap, ObjectKey, Snapshot
from tarsy.evidence.target import UnknownTarget, find_target
from tarsy.evidence.topology import Topology
from tarsy.http.models import View
from tarsy.kube.client import ApiError, KubeClient

_SUMMARY = 160
_STYLES = {Certainty.CERTAIN: "bold red", Certainty.LIKELY: "yellow"}


class ObjectView(View):
    """An object."""

    kind: str
    namespace: str = ""
    name: str


class ChangeView(View):
    """A change with its rank."""

    at: datetime
    type: str
    object: ObjectView
    summary: str
    manager: str = ""
    order: str = Field(description="Candidate, Unordered or Consequence.")
    score: float
    source: str


class ChangesView(View):
    """Changes that may have to do with a target."""

    target: ObjectView | None
    onset: datetime | None
    since: datetime
    changes: tuple[ChangeView, ...]
    not_read: dict[str, str] = Field(description="Reason by kind.")


class SignalView(View):
    """A signal of a rule."""

    rule: str
    certainty: str
    text: str
    quote: str
    objects: tuple[ObjectView, ...]
    count: int


class TriageView(View):
    """Signals of all rules."""

    target: ObjectView | None
    signals: tuple[SignalView, ...]
    not_read: dict[str, str] = Field(description="Reason by kind.")


async def show_changes(
    client: KubeClient, namespace: str, target: str | None, window: timedelta, output: Output
) -> int:
    """Prints the changes that may have to do with a target; returns the exit status.

    Args:
        client: the Kubernetes API, as the user.
        namespace: the namespace to read.
        target: the object, as `deploy/checkout`; None: all of the namespace.
        window: how long before the onset changes count.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: the API cannot be used, or there is no such object.
    """
    snapshot, key = await _read(client, namespace, target)
    report = find_changes(Topology(snapshot), namespace, key, window=window)
    if for_programs(output):
        write_output(_changes_view(report), output)
        return 0
    console = printer()
    console.print(_onset_line(report, namespace), style="bold")
    if report.changes:
        console.print(_changes_table(report.changes))
    else:
        console.print(f"No change since {report.since:%H:%M} UTC is visible.")
    _print_gaps(report.gaps)
    return 0


async def show_triage(client: KubeClient, namespace: str, target: str | None, output: Output) -> int:
    """Prints the faults that rules find; returns the exit status.

    Args:
        client: the Kubernetes API, as the user.
        namespace: the namespace to read.
        target: the object, as `deploy/checkout`; None: all of the namespace.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: the API cannot be used, or there is no such object.
    """
    snapshot, key = await _read(client, namespace, target)
    signals = find_faults(Topology(snapshot), key)
    if for_programs(output):
        items = tuple(_signal_view(one) for one in signals)
        write_output(
            TriageView(target=None if key is None else _view(key), signals=items, not_read=_not_read(snapshot.gaps)),
            output,
        )
        return 0
    console = printer()
    for one in signals:
        count = f" ({one.count} alike)" if one.count > 1 else ""
        console.print(f"{one.certainty}", style=_STYLES[one.certainty], end="  ")
        console.print(f"{one_line(one.text, 400)}{count}")
        console.print(f'         {one.rule}: "{one_line(one.quote, 400)}"', style="dim")
    if not signals:
        console.print(f"No rule finds a fault in {key or f'namespace {namespace}'}.")
    _print_gaps(snapshot.gaps)
    return 0


async def _read(client: KubeClient, namespace: str, target: str | None) -> tuple[Snapshot, ObjectKey | None]:
    async def get(path: str, query: Mapping[str, str], metadata_only: bool) -> Mapping[str, Any]:
        try:
            accept = METADATA_LIST if metadata_only else "application/json"
            return await client.request("GET", path, query=query, accept=accept)
        except ApiError as error:
            raise CannotRead(error.status, error.message) from error

    try:
        snapshot = await read_snapshot(get, namespace, datetime.now(UTC))
        return snapshot, None if target is None else find_target(snapshot, namespace, target)
    except CannotRead as error:
        raise ApiUseError(f"the cluster cannot be read: {one_line(str(error), 400)}", error.status) from None
    except UnknownTarget as error:
        raise ApiUseError(str(error), 404) from None


def _onset_line(report: ChangeReport, namespace: str) -> str:
    about = str(report.target or f"namespace {namespace}")
    if report.onset is None:
        return f"{about}: nothing says that it fails; changes are ordered by time"
    return f"{about}: fails since {report.onset.at:%Y-%m-%d %H:%M:%S} UTC ({report.onset.told_by})"


def _changes_table(changes: Sequence[RankedChange]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("Score", "Time (UTC)", "Type", "Object", "Change", "By"):
        table.add_column(title, overflow="fold", justify="right" if title == "Score" else "left")
    for one in changes:
        change = one.change
        score = {Order.CONSEQUENCE: "after", Order.UNORDERED: "?"}.get(one.order, f"{one.score:.2f}")
        cells = (score, f"{change.at:%m-%d %H:%M:%S}", change.type.value, str(change.object))
        table.add_row(
            *cells,
            one_line(change.summary, _SUMMARY),
            one_line(change.manager, 40),
            style="dim" if one.order is Order.CONSEQUENCE else None,
        )
    return table


def _print_gaps(gaps: Sequence[Gap]) -> None:
    for sentence in gaps_text(gaps):
        beside().print(one_line(sentence, 1_000), style="yellow")


def _changes_view(report: ChangeReport) -> ChangesView:
    return ChangesView(
        target=None if report.target is None else _view(report.target),
        onset=report.onset.at if report.onset else None,
        since=report.since,
        changes=tuple(
            ChangeView(
                at=one.change.at,
                type=one.change.type.value,
                object=_view(one.change.object),
                summary=one.change.summary,
                manager=one.change.manager,
                order=one.order.value,
                score=one.score,
                source=one.change.source.value,
            )
            for one in report.changes
        ),
        not_read=_not_read(report.gaps),
    )


def _signal_view(signal: Signal) -> SignalView:
    return SignalView(
        rule=signal.rule,
        certainty=signal.certainty.value,
        text=signal.text,
        quote=signal.quote,
        objects=tuple(_view(key) for key in signal.objects),
        count=signal.count,
    )


def _view(key: ObjectKey) -> ObjectView:
    return ObjectView(kind=key.kind, namespace=key.namespace, name=key.name)


def _not_read(gaps: Sequence[Gap]) -> dict[str, str]:
    return {gap.kind: gap.reason for gap in gaps}
