"""Prints the earlier investigations that the agents of an investigation were given (`precedents NAME`)."""

from datetime import UTC

from tarsy.cli.output import Output, for_programs, print_lines, write_output
from tarsy.client.api import TarsyClient, read_as, run_path
from tarsy.client.plain_text import one_line
from tarsy.client.refusals import READ_TIMELINE
from tarsy.http.views.precedents import PrecedentList, PrecedentView
from tarsy.record.judging.precedent import LONGEST_PRECEDENT, PrecedentEnding, PrecedentMatch

_MATCHES = {
    PrecedentMatch.INCIDENT: "same incident",
    PrecedentMatch.WORKLOAD: "same workload and alert type",
    PrecedentMatch.CHANGED_OBJECT: "same changed object",
    PrecedentMatch.WORDS: "words in common",
}


async def print_precedents(client: TarsyClient, namespace: str, name: str, output: Output) -> int:
    """Prints the precedents of an investigation; returns the exit status.

    Args:
        client: the API.
        namespace: the namespace of the investigation.
        name: the name of the investigation.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: the investigation is not on record, or may not be read.
    """
    found = await read_as(client, PrecedentList, run_path(namespace, name, "timeline/precedents"), READ_TIMELINE)
    if for_programs(output):
        write_output(found, output)
    else:
        print_lines(precedent_report(namespace, name, found))
    return 0


def precedent_report(namespace: str, name: str, found: PrecedentList) -> list[str]:
    """Returns the lines for people.

    Args:
        namespace: the namespace of the investigation.
        name: the name of the investigation.
        found: its precedents.
    """
    if not found.items and not found.hidden:
        return [f"The agents of {namespace}/{name} were given no earlier investigations."]
    lines = [f"Given to the agents of {namespace}/{name} as history, not as evidence:"]
    for one in found.items:
        lines += _told(one)
    if found.hidden:
        lines.append(f"  and {found.hidden} in other namespaces that you may not read")
    return lines


def _told(one: PrecedentView) -> list[str]:
    what = _MATCHES[one.match]
    about = f" {one_line(one.matched, 120)}" if one.matched else ""
    gone = "" if one.on_record else ", its record was deleted"
    ended = "REFUTED" if one.ending is PrecedentEnding.REFUTED else one.ending.value.lower()
    reviewed = f", reviewed by {one_line(one.reviewer, 128)}" if one.reviewer else ""
    outcome = f", incident {one_line(one.outcome, 64)}" if one.outcome else ""
    day = one.finished_at.astimezone(UTC)
    return [
        f"  {day:%Y-%m-%d} {one.namespace}/{one.name} ({what}{about}{gone})",
        f"    {one_line(one.summary, LONGEST_PRECEDENT)}",
        f"    confidence {one.confidence.value}, ended {ended}{reviewed}{outcome}",
    ]
