"""Prints how often the findings of Chains were right, by the confidence that they claimed (`calibration`)."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from tarsy.cli.console import Indented
from tarsy.cli.output import Output, for_programs, place_of_list, printer, write_output
from tarsy.client.api import TarsyClient, read_as
from tarsy.client.plain_text import one_line
from tarsy.client.refusals import READ_CALIBRATION
from tarsy.http.views.calibration import CalibrationList, ChainCalibration, ConfidenceCalibration, CountView

_PAGE = 200
_TITLES = ("CHAIN", "CONFIDENCE", "RIGHT", "SHARE", "95 % INTERVAL", "NEWEST", "BEFORE", "CALIBRATED")


async def list_calibration(client: TarsyClient, namespace: str | None, output: Output) -> int:
    """Prints Chains with the verdicts on their findings; returns the exit status.

    Args:
        client: the API.
        namespace: of the findings; None: all.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: they may not be read.
    """
    path = "/calibration" if namespace is None else f"/namespaces/{namespace}/calibration"
    items: list[ChainCalibration] = []
    page: CalibrationList | None = None
    while page is None or page.next is not None:
        query = {"limit": str(_PAGE), **({"continue": page.next} if page and page.next else {})}
        page = await read_as(client, CalibrationList, path, READ_CALIBRATION, query)
        items += page.items
    if for_programs(output):
        write_output(page.model_copy(update={"items": tuple(items)}), output)
    elif not items:
        where = place_of_list(namespace)
        printer().print(f"No finding in {where} has a verdict: `kubectl tarsy reviews`.", markup=False)
    else:
        printer().print(calibration_table(items))
        for one in items:
            if one.calibrated is False or any(found.drifted for found in one.classes):
                printer().print(Text(f"{one.namespace}/{one.chain}", style="bold"))
                printer().print(Indented(Text(one_line(one.message, 500)), 2))
    return 0


def calibration_table(items: Sequence[ChainCalibration]) -> Table:
    """Renders the verdicts on the findings of Chains, with a line for each confidence."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in _TITLES:
        table.add_column(title, overflow="fold")
    for item in items:
        for number, found in enumerate(item.classes):
            named = [f"{item.namespace}/{item.chain}" if number == 0 else ""]
            state = Text({True: "True", False: "False", None: "Unknown"}[item.calibrated] if number == 0 else "")
            state.stylize("red" if item.calibrated is False else "")
            table.add_row(*(Text(one_line(cell, 130)) for cell in (*named, *_cells(found))), state)
    return table


def _cells(found: ConfidenceCalibration) -> list[str]:
    share, interval = f"{found.right / found.total:.0%}", f"{100 * found.low:.0f} to {found.high:.0%}"
    newest = _counted(found.recent) + (" (worse)" if found.drifted else "")
    return [found.confidence, f"{found.right} of {found.total}", share, interval, newest, _counted(found.before)]


def _counted(found: CountView) -> str:
    return f"{found.right} of {found.total}" if found.total else "-"
