"""Prints the queue of reviews (`reviews`) and the reviews of a finding, and writes verdicts (`review`)."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import yaml
from pydantic import ValidationError
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tarsy.cli.console import Indented
from tarsy.cli.output import Output, for_programs, place_of_list, printer, write_items, write_output
from tarsy.client.api import TarsyClient, read_as, run_path
from tarsy.client.errors import ApiUseError
from tarsy.client.plain_text import one_line, plain
from tarsy.client.refusals import READ_REVIEWS
from tarsy.http.review_entry import case_of_review
from tarsy.http.views.reviews import MAX_REVIEWED, ReviewIntent, ReviewItem, ReviewPage, ReviewsBody, ReviewView
from tarsy.record.judging.incident_outcome import IncidentOutcome, outcome_sentence
from tarsy.resources.v1alpha1.review import FindingVerdict

_PAGE = 200
_VERDICTS = {"Right": "green", "Partly": "yellow", "Wrong": "red"}
_OUTCOMES = {IncidentOutcome.RECURRED: "yellow"}


@dataclass(frozen=True, slots=True)
class SaidReview:
    """Holds the values of the options of `review`."""

    action: ReviewIntent
    verdict: FindingVerdict | None = None
    root_cause: str | None = None
    """KIND/NAME."""
    note: str | None = None


async def list_reviewable(client: TarsyClient, namespace: str | None, state: str, limit: int, output: Output) -> int:
    """Prints investigations by the state of their reviews; returns the exit status.

    Args:
        client: the API.
        namespace: of the investigations; None: all.
        state: NeedsReview, InProgress or Reviewed.
        limit: maximum number.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: they may not be read.
    """
    path = "/reviews" if namespace is None else f"/namespaces/{namespace}/reviews"
    query = {"state": state, "limit": str(min(limit, _PAGE))}
    page = await read_as(client, ReviewPage, path, READ_REVIEWS, query)
    if for_programs(output):
        write_output(page, output)
    elif not page.items:
        where = place_of_list(namespace)
        printer().print(f"No finished investigation in {where} is in the state {state}.")
    else:
        printer().print(reviews_table(page.items, with_namespace=namespace is None))
        if page.next is not None:
            printer().print(f"There are more than {len(page.items)}; see --limit.", style="dim")
    return 0


def reviews_table(items: Sequence[ReviewItem], *, with_namespace: bool) -> Table:
    """Renders investigations with the state of their reviews.

    Args:
        items: the investigations.
        with_namespace: whether a column names the namespaces.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    titles = ["INVESTIGATION", "ALERT TYPE", "CONFIDENCE", "OUTCOME", "VERDICT", "BY", "ENDED", "FINDING"]
    for title in (["NAMESPACE"] if with_namespace else []) + titles:
        table.add_column(title, overflow="fold")
    for one in items:
        people = one.reviewed_by or one.claimed_by
        cells = [
            one.name,
            one.alert_type,
            one.shown_confidence or one.confidence,
            one.outcome or "-",
            one.verdict or "-",
        ]
        cells += [", ".join(people) or "-", f"{one.finished_at:%Y-%m-%d %H:%M}Z", one.finding]
        row = [Text(one_line(cell, 160)) for cell in cells]
        row[4].stylize(_VERDICTS.get(one.verdict or "", ""))
        table.add_row(*([Text(one.namespace)] if with_namespace else []), *row)
    return table


async def show_reviews(
    client: TarsyClient, namespace: str, names: Sequence[str], output: Output, *, as_case: bool
) -> int:
    """Prints what people said about findings; returns the exit status.

    Args:
        client: the API.
        namespace: of the investigations.
        names: of them.
        output: for people, or the format for programs.
        as_case: prints a case of an EvalSuite for each instead.

    Raises:
        ApiUseError: they may not be read, or there is no root cause for a case.
    """
    found = [await read_as(client, ReviewView, run_path(namespace, name, "review"), READ_REVIEWS) for name in names]
    if as_case:
        cases = []
        for one in found:
            case = case_of_review(one)
            if case is None:
                raise ApiUseError(
                    f"no verdict that counts names the root cause of {namespace}/{one.name}: "
                    f"`kubectl tarsy review {one.name} --verdict Right --root-cause KIND/NAME`",
                    409,
                )
            cases.append(case)
        if output == "json":
            write_output(cases, output)
        else:
            for one, case in zip(found, cases, strict=True):
                sys.stdout.write(f"# {case_origin(one)}\n{yaml.safe_dump([case], sort_keys=False)}")
    elif for_programs(output):
        write_items(found, output)
    else:
        for one in found:
            printer().print(render_review(one))
    return 0


def render_review(found: ReviewView) -> RenderableType:
    """Renders what people said about the finding of an investigation."""
    head = Text(f"{found.namespace}/{found.name}", style="bold")
    head.append(f"  {found.state}")
    if found.verdict is not None:
        head.append(f"  {found.verdict}", style=_VERDICTS.get(found.verdict, ""))
    if found.outcome is not None:
        head.append(f"  {found.outcome.value}", style=_OUTCOMES.get(found.outcome, ""))
    if found.claimed_by:
        head.append(f"  claimed by {one_line(', '.join(found.claimed_by), 200)}", style="dim")
    lines: list[RenderableType] = [head]
    if not found.reviewable:
        lines.append(Indented(Text("It has no finding to review: it runs, failed early, or is a replay."), 2))
    for entry in found.activity:
        when = f"{entry.at:%Y-%m-%d %H:%M}Z" if entry.at else ""
        said = f"{when}  {one_line(entry.author, 100)} {entry.action}"
        if entry.verdict is not None:
            said += f": {entry.verdict}" + ("" if entry.counted else " (does not count any more)")
        if entry.root_cause is not None:
            said += f", root cause {entry.root_cause.kind}/{entry.root_cause.name}"
        lines.append(Indented(Text(said), 2))
        if entry.note:
            lines.append(Indented(Text(plain(entry.note), style="dim"), 4))
    return Group(*lines)


def case_origin(found: ReviewView) -> str:
    """Returns a line for people about the origin of a case: its investigation, the verdict, and the outcome."""
    people = ", ".join(dict.fromkeys(one.author for one in found.activity if one.counted))
    became = "Outcome: not known" if found.outcome is None else outcome_sentence(found.outcome)
    return one_line(f"{found.namespace}/{found.name}: {found.verdict} by {people}. {became}", 400)


async def write_reviews(
    client: TarsyClient, namespace: str, names: Sequence[str], said: SaidReview, output: Output
) -> int:
    """Writes what the user says about findings; returns the exit status, 1 when one of them was refused.

    Args:
        client: the API.
        namespace: of the investigations.
        names: of them, at most 50.
        said: what the user says.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: it is not valid, or the API refused.
    """
    body = review_body(names, said)
    results = await client.review(namespace, body)
    if for_programs(output):
        write_items(results, output)
    else:
        for one in results:
            if one.error is None:
                printer().print(Text(f"{one.investigation}: Review {one.review} created", style="green"))
            else:
                printer().print(Text(f"{one.investigation}: {one_line(one.error, 400)}", style="red"))
    return 0 if all(one.error is None for one in results) else 1


def review_body(names: Sequence[str], said: SaidReview) -> ReviewsBody:
    """Returns the request for what the user says.

    Args:
        names: of the investigations.
        said: what the user says.

    Raises:
        ApiUseError: it is not valid.
    """
    if len(names) > MAX_REVIEWED:
        raise ApiUseError(f"{len(names)} investigations at once are too many: give at most {MAX_REVIEWED}", 400)
    cause = None
    if said.root_cause is not None:
        kind, slash, name = said.root_cause.partition("/")
        if not slash:
            raise ApiUseError(f"--root-cause {said.root_cause}: write KIND/NAME, such as Deployment/checkout", 400)
        cause = {"kind": kind, "name": name}
    values = {
        "action": said.action,
        "investigations": list(names),
        "verdict": said.verdict,
        "rootCause": cause,
        "note": said.note,
    }
    try:
        return ReviewsBody.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ApiUseError(f"{where}: {first['msg']}" if where else str(first["msg"]), 400) from None
