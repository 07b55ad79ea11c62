"""Prints the outcome of every notification that the intake received (`tarsy ledger`).

Decision: a notification counts as investigated or folded only after its Alert was created. Those without are printed
separately, and the ledger does not balance: received = investigated + folded + resolved + rejected.
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from rich.table import Table

from tarsy.cli.console import new_console
from tarsy.store.database import open_pool
from tarsy.store.intake import Intake, LedgerLine

FATES = ("investigated", "folded", "resolved", "rejected")


async def show_ledger(database_url: str, seconds: float | None, since: str, *, output: Literal["text", "json"]) -> int:
    """Prints the ledger of the last `seconds` (None: all of it); returns 1 if it does not balance.

    Args:
        database_url: the database.
        seconds: length of the period up to now.
        since: the same as the user wrote it.
        output: for people, or the format for programs.

    Raises:
        StoreError: the record cannot be read.
    """
    pool = await open_pool(database_url, max_size=1, application="tarsy ledger")
    try:
        lines, twice = await Intake(pool).ledger(seconds)
    finally:
        await pool.close()
    account = account_of(lines, twice)
    if output == "json":
        sys.stdout.write(json.dumps({"since": since, **account}, indent=2) + "\n")
    else:
        _print(lines, account)
    return 0 if account["balances"] else 1


def account_of(lines: Sequence[LedgerLine], twice: int) -> dict[str, Any]:
    """Returns the sums, the missing Alerts and the balance; `twice` counts incidents opened more than once."""
    sums = Counter[str]()
    for line in lines:
        sums["owed" if line.owed else line.fate] += line.notifications
    received = sum(line.notifications for line in lines)
    return {
        "received": received,
        **{fate: sums[fate] for fate in FATES},
        "owed": sums["owed"],
        "openedTwice": twice,
        "resends": sum(line.resends for line in lines),
        "balances": received == sum(sums[fate] for fate in FATES) and not twice,
    }


def _print(lines: Sequence[LedgerLine], account: dict[str, Any]) -> None:
    console = new_console()
    made = Table(box=None, pad_edge=False, header_style="bold")
    for title, side in (("Fate", "left"), ("Reason", "left"), ("Notifications", "right"), ("Sent again", "right")):
        made.add_column(title, justify="right" if side == "right" else "left")
    for line in lines:
        reason = f"{line.reason}, but its Alert is not made yet" if line.owed else line.reason
        made.add_row(line.fate, reason, str(line.notifications), str(line.resends))
    if lines:
        console.print(made)
    sides = " + ".join(f"{account[fate]} {fate}" for fate in FATES)
    console.print(f"{account['received']} received {'=' if account['balances'] else 'is not'} {sides}", soft_wrap=True)
    if account["owed"]:
        console.print(
            f"{account['owed']} have no Alert yet: the operator creates it when the Kubernetes API accepts it."
        )
    if account["openedTwice"]:
        console.print(
            f"{account['openedTwice']} incidents were opened more than once, which must not happen; report it as a bug."
        )
