"""Checks the record of an investigation against its seals (`verify NAME`)."""

from datetime import UTC

from tarsy.cli.output import Output, for_programs, print_lines, write_output
from tarsy.client.api import TarsyClient, read_as, run_path
from tarsy.client.plain_text import one_line
from tarsy.client.refusals import READ_TRACE
from tarsy.http.views.seal import ErasedView, RunSealView, SealView

SOUND, FLAWED, NOT_SEALED = 0, 1, 2


async def verify_record(client: TarsyClient, namespace: str, name: str, output: Output) -> int:
    """Prints whether a record is as it was written; returns the exit status.

    Args:
        client: the API.
        namespace: the namespace of the investigation.
        name: the name of the investigation.
        output: for people, or the format for programs.

    Returns:
        0: all is as it was sealed. 1: something was changed, added or deleted. 2: there are no seals to check, because
        the run is of an older version or its record was deleted.

    Raises:
        ApiUseError: the investigation is not on record, or may not be read.
    """
    found = await read_as(client, SealView, run_path(namespace, name, "trace/seal"), READ_TRACE)
    if for_programs(output):
        write_output(found, output)
    else:
        print_lines(report_lines(namespace, name, found))
    return verify_status(found)


def verify_status(found: SealView) -> int:
    """Returns the exit status for a check."""
    if any(run.flaw_count and run.steps for run in found.runs):
        return FLAWED
    return NOT_SEALED if found.erased is not None or any(not run.steps for run in found.runs) else SOUND


def report_lines(namespace: str, name: str, found: SealView) -> list[str]:
    """Returns the lines for people.

    Args:
        namespace: the namespace of the investigation.
        name: the name of the investigation.
        found: the result of the check.
    """
    if found.erased is not None:
        return [_erased(f"{namespace}/{name}", found.erased)]
    return [line for run in found.runs for line in _run(run)]


def _erased(where: str, erased: ErasedView) -> str:
    head = f" The last seal was {erased.head}." if erased.head else ""
    return f"{where}: the record was deleted at {erased.erased_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z.{head}"


def _run(run: RunSealView) -> list[str]:
    what = f"question {run.name}" if run.question else f"investigation {run.name}"
    if not run.steps:
        return [f"{what}: not sealed; it ran with a version before seals"]
    verdict = "as it was written" if not run.flaw_count else f"{run.flaw_count:,} differences"
    lines = [f"{what}: {verdict}; {run.steps:,} steps, {run.rows:,} rows, head {run.head[:16]}"]
    if run.published_head is None and not run.question:
        lines.append("  The status of the object contains no head, so a rewritten chain would not be noticed.")
    elif run.unpublished:
        lines.append(f"  {run.unpublished:,} steps are newer than the head in the status; they cannot be verified yet.")
    if run.left_open:
        lines.append(f"  {run.left_open:,} rows were closed unfinished by the end of an attempt; they are not sealed.")
    lines += [f"  {flaw.kind}: {one_line(flaw.where, 120)} {one_line(flaw.message, 240)}" for flaw in run.flaws]
    if run.flaw_count > len(run.flaws):
        lines.append(f"  and {run.flaw_count - len(run.flaws):,} more")
    return lines
