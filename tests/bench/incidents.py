"""How well changes are ranked and faults are found on the corpus of incidents (`tests/incidents`).

Recall counts the incidents whose cause is a change of an object. `rules only` counts the incidents whose first signal
is right, without any ranking. Each incident is also served by the embedded API and read by HTTP: with the product's
reader, which must give the same, and with a real tool server, whose answers are those that are recorded.
`python -m tests.incidents.measure` prints the table by incident.
"""

import asyncio
from collections.abc import Sequence

from tests.bench.figures import Figure, Result

from e2e.kubernetes_mcp import NotToBeHad
from incidents.measure import totals
from incidents.on_api import read, serve
from incidents.record import record, recorded
from tarsy.kube.client import KubeClient
from tarsy_dev.incidents.corpus import FOLDER, Incident, load_incidents
from tarsy_dev.incidents.rules import Measured, measure

_QUICK = 3


def _figures(measured: Sequence[Measured]) -> list[Figure]:
    figures = []
    for half, aim_1, aim_3 in (("A", "", ""), ("B", ">= 0.75", ">= 0.9")):
        found = totals(measured, half=half)
        certain = f"{found.certain_signals_right} of {found.certain_signals}"
        figures += [
            Figure(f"half {half}: recall@1 of {found.with_change}", found.recall_at_1, "", aim_1),
            Figure(f"half {half}: recall@3 of {found.with_change}", found.recall_at_3, "", aim_3),
            Figure(f"half {half}: rules only, first signal right, of {found.with_fault}", found.first_right, ""),
            Figure(f"half {half}: recall of the rules, of {found.with_fault}", found.rule_recall, ""),
            Figure(f"half {half}: precision of the rules, of {found.signals} signals", found.rule_precision, ""),
            Figure(f"half {half}: precision of Certain, {certain}", found.certain_precision, ""),
            Figure(f"half {half}: Certain signals without a fault", found.certain_without_fault, "incidents", "0"),
        ]
    return figures


async def _is_same_by_http(incident: Incident) -> bool:
    with serve(incident) as api:
        async with await KubeClient.load(api.kubeconfig) as client:
            found = measure(incident, await read(client, incident.namespace, incident.read_at))
    expected = measure(incident)
    return (found.ranked, found.signals) == (expected.ranked, expected.signals)


async def _is_shown_as_recorded(incident: Incident) -> bool:
    now, before = await record(incident.name), recorded(incident.name)
    return [one.text for one in now[1:]] == [one.text for one in before[1:]]  # pods have ages in seconds


async def run(quick: bool) -> Result:
    """Measures all incidents in memory, and all by HTTP; `quick`: three by HTTP."""
    incidents = load_incidents()
    figures = _figures(await asyncio.to_thread(lambda: [measure(one) for one in incidents]))
    served = incidents[:_QUICK] if quick else incidents
    same = [await _is_same_by_http(one) for one in served]
    figures.append(Figure("read by HTTP: the same ranking and signals", sum(same), "incidents", str(len(served))))
    note = "one reading of the objects, without logs and without a time of the alert"
    try:
        shown = [await _is_shown_as_recorded(one) for one in served]
        told = "kubernetes-mcp-server: Events and target as recorded"
        figures.append(Figure(told, sum(shown), "incidents", str(len(served))))
    except NotToBeHad as reason:
        note += f"; {reason}"
    return Result(f"{len(incidents)} incidents of {FOLDER.name}/; {note}", figures)
