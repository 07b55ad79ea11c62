"""Prints evidence that is computed from the objects of the cluster (`changes`, `triage`), without a model.

Everything is read with the user's own kubeconfig, so nobody sees more than kubectl would show. Decision: what could not
be read is part of the answer, because "no fault was found" means little when pods could not be listed.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from rich.table import Table

from tarsy.cli.output import Output, beside, for_programs, printer, write_output
from tarsy.client.errors import ApiUseError
from tarsy.client.plain_text import one_line
from tarsy.evidence.changes.ranking import Order
from tarsy.evidence.reading import CannotRead, read_snapshot
from tarsy.evidence.report import find_changes, find_faults, gaps_text
from tarsy.evidence.rules.signal import Certainty
from tarsy.evidence.snapshot import Gap, ObjectKey
from tarsy.evidence.target import UnknownTarget, find_target
from tarsy.evidence.topology import Topology
from tarsy.evidence.verdict import TargetHealth
from tarsy.http.views.evidence import ChangesView, ChangeView, TriageView, VerdictView
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.lists import with_token
from tarsy.masking import default_masker

VERDICT_STATUS = {TargetHealth.HEALTHY: 0, TargetHealth.FAULTY: 3, TargetHealth.INCONCLUSIVE: 4}
"""Exit status by verdict; 1 and 2 are errors of the command itself."""
_SUMMARY = 160
_STYLES: dict[str, str] = {Certainty.CERTAIN: "bold red", Certainty.LIKELY: "yellow"}
_NO_SCORE: dict[str, str] = {Order.CONSEQUENCE: "after", Order.UNORDERED: "?"}


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
    topology, key = await _read(client, namespace, target)
    report = find_changes(topology, namespace, key, window=window)
    view = ChangesView.of(report, default_masker().mask)
    if for_programs(output):
        write_output(view, output)
        return 0
    console = printer()
    console.print(_onset_line(view, namespace), style="bold")
    if view.changes:
        console.print(_changes_table(view.changes))
    else:
        console.print(f"No change since {view.since:%H:%M} UTC is visible.")
    _print_rest(view.left_out, "changes", topology.gaps)
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
    topology, key = await _read(client, namespace, target)
    signals = find_faults(topology, key)
    view = TriageView.of(key, signals, topology.gaps, default_masker().mask)
    if for_programs(output):
        write_output(view, output)
        return 0
    console = printer()
    for one in view.signals:
        count = f" ({one.count} alike)" if one.count > 1 else ""
        console.print(f"{one.certainty}", style=_STYLES.get(one.certainty), end="  ")
        console.print(f"{one.text}{count}")
        console.print(f'         {one.rule}: "{one.quote}"', style="dim")
    if not view.signals:
        console.print(f"No rule finds a fault in {view.target or f'namespace {namespace}'}.")
    _print_rest(view.left_out, "signals", topology.gaps)
    return 0


async def show_verdict(client: KubeClient, namespace: str, target: str, output: Output) -> int:
    """Prints whether rules find a fault in an object; returns the exit status: 0 Healthy, 3 Faulty, 4 Inconclusive.

    Args:
        client: the Kubernetes API, as the user.
        namespace: the namespace to read.
        target: the object, as `deploy/checkout`.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: the API cannot be used, or there is no such object.
    """
    topology, key = await _read(client, namespace, target)
    if key is None:
        raise TypeError("a verdict is about a target")
    view = VerdictView.of(key, find_faults(topology, key), topology.gaps, default_masker().mask)
    if for_programs(output):
        write_output(view, output)
    else:
        printer().print(f"{view.target}: {view.verdict}: {view.reason}", markup=False, soft_wrap=True)
    return VERDICT_STATUS[view.verdict]


async def _read(client: KubeClient, namespace: str, target: str | None) -> tuple[Topology, ObjectKey | None]:
    try:
        snapshot = await read_snapshot(with_token(client), namespace, datetime.now(UTC))
        if not any(one.namespace for one in snapshot.all_keys()):
            await _require_namespace(client, namespace)
        return Topology(snapshot), None if target is None else find_target(snapshot, namespace, target)
    except CannotRead as error:
        raise ApiUseError(f"the cluster cannot be read: {one_line(str(error), 400)}", error.status) from None
    except UnknownTarget as error:
        raise ApiUseError(one_line(str(error), 1_000), 404) from None


async def _require_namespace(client: KubeClient, namespace: str) -> None:
    """Raises ApiUseError if there is no such namespace: its lists are empty, as those of one without objects."""
    try:
        await client.get("Namespace", None, namespace)
    except ApiError as error:
        if error.status == 404:
            raise ApiUseError(f"there is no namespace {one_line(namespace, 64)}", 404) from None


def _onset_line(view: ChangesView, namespace: str) -> str:
    about = str(view.target or f"namespace {namespace}")
    if view.onset is None:
        return f"{about}: no sign of a failure was found; changes are ordered by time"
    return f"{about}: fails since {view.onset:%Y-%m-%d %H:%M:%S} UTC ({view.onset_source})"


def _changes_table(changes: Sequence[ChangeView]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("Score", "Time (UTC)", "Type", "Object", "Change", "By"):
        table.add_column(title, overflow="fold", justify="right" if title == "Score" else "left")
    for one in changes:
        score = _NO_SCORE.get(one.order, f"{one.score:.2f}")
        cells = (score, f"{one.at:%m-%d %H:%M:%S}", one.type, str(one.object))
        table.add_row(
            *cells,
            one_line(one.summary, _SUMMARY),
            one_line(one.manager, 40),
            style="dim" if one.order == Order.CONSEQUENCE else None,
        )
    return table


def _print_rest(left_out: int, what: str, gaps: Sequence[Gap]) -> None:
    if left_out:
        beside().print(f"{left_out:,} more {what} are not shown.", style="yellow")
    for sentence in gaps_text(gaps):
        beside().print(one_line(sentence, 1_000), style="yellow")
