"""How well changes are ranked and faults are found on the corpus of incidents (`tests/incidents`).

Recall counts the incidents whose cause is a change of an object. `python -m tests.incidents.measure` prints the table
by incident.
"""

import asyncio

from tests.bench.figures import Figure, Result

from incidents.loader import load_incidents
from incidents.measure import measure, totals


def _measure() -> Result:
    measured = [measure(incident) for incident in load_incidents()]
    figures = []
    for half, aim_1, aim_3 in (("A", "", ""), ("B", ">= 0.75", ">= 0.9")):
        found = totals(measured, half=half)
        figures += [
            Figure(f"half {half}: recall@1 of {found.with_change}", found.recall_at_1, "", aim_1),
            Figure(f"half {half}: recall@3 of {found.with_change}", found.recall_at_3, "", aim_3),
            Figure(f"half {half}: right signal, of {found.with_fault}", found.right, "incidents"),
            Figure(f"half {half}: a Certain signal is right, of {found.with_fault}", found.certain_right, "incidents"),
            Figure(f"half {half}: Certain signals without a fault", found.certain_without_fault, "incidents", "0"),
        ]
    return Result(
        f"{len(measured)} incidents; one reading of the objects, without logs and without a time of the alert", figures
    )


async def run(quick: bool) -> Result:
    """Measures in a thread of its own; `quick` changes nothing."""
    return await asyncio.to_thread(_measure)
