"""Prints the scores of an investigation (`score`) and of a suite (`scores`), and asks for others."""

from rich.console import Group, RenderableType
from rich.text import Text

from tarsy.cli.console import Indented
from tarsy.cli.output import Output, for_programs, printer, write_output
from tarsy.client.api import TarsyClient, read_as, run_path
from tarsy.client.plain_text import one_line
from tarsy.client.refusals import READ_SCORES
from tarsy.http.views.scores import ChainScoresView, ScoresView, ScoreView, SuiteScoresView

_GOOD, _FAIR = 60, 35
"""Points from which a score is shown green, and yellow: the bands that judges are told."""


async def show_score(client: TarsyClient, namespace: str, name: str, output: Output) -> int:
    """Prints the scores of an investigation; returns the exit status.

    Args:
        client: the API.
        namespace: of the investigation.
        name: of it.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: they may not be read.
    """
    found = await read_as(client, ScoresView, run_path(namespace, name, "score"), READ_SCORES)
    if for_programs(output):
        write_output(found, output)
    elif not found.scores:
        printer().print(f"{namespace}/{name} has no score. See spec.scoring of EvalSuite, or ask for one with --again.")
    else:
        printer().print(Text(f"{namespace}/{name}", style="bold"), *map(render_score, found.scores), sep="\n")
    return 0


def render_score(found: ScoreView) -> RenderableType:
    """Renders one scoring of an investigation."""
    head = Text()
    if found.points is None:
        head.append(found.state, style="yellow")
    else:
        head.append(f"{found.points} of 100", style=_colour(found.points))
    head.append(f"  by suite {found.suite}")
    if found.points is not None and not found.current:
        head.append(", by an earlier judge", style="dim")
    if found.request is not None:
        head.append(", asked for", style="dim")
    lines: list[RenderableType] = [Indented(head, 2)]
    if found.reason:
        lines.append(Indented(Text(one_line(found.reason, 600)), 4))
    if found.problem:
        lines.append(Indented(Text(one_line(found.problem, 400), style="dim"), 4))
    if found.tags:
        lines.append(Indented(Text(f"tags: {', '.join(found.tags)}"), 4))
    for tool in found.missing_tools:
        lines.append(Indented(Text(f"missing tool: {one_line(tool.name, 64)}: {one_line(tool.why, 300)}"), 4))
    used = f"{_count(found.quotes, 'quote')}, {_count(found.attempts, 'call')}, {_count(found.tokens, 'token')}"
    if found.cost_usd is not None:
        used += f", ${found.cost_usd:.4f}" + ("" if found.cost_complete else " at most")
    lines.append(Indented(Text(used, style="dim"), 4))
    return Group(*lines)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


async def show_suite(client: TarsyClient, namespace: str, suite: str, output: Output) -> int:
    """Prints what the scores of a suite tell; returns the exit status.

    Args:
        client: the API.
        namespace: of the suite.
        suite: its name.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: they may not be read.
    """
    path = f"/namespaces/{namespace}/evalsuites/{suite}/scores"
    found = await read_as(client, SuiteScoresView, path, READ_SCORES)
    if for_programs(output):
        write_output(found, output)
    else:
        printer().print(render_suite(found))
    return 0


def render_suite(found: SuiteScoresView) -> RenderableType:
    """Renders what the scores of a suite tell."""
    head = Text(f"{found.namespace}/{found.name}", style="bold")
    head.append(f"  {found.reason or ('not scoring' if not found.scoring else 'not seen yet')}")
    used = f"{found.scored} scores, {found.waiting} waiting, {found.failed} failed; today {found.tokens_today:,}"
    if found.tokens_budget is not None:
        used += f" of {found.tokens_budget:,}"
    used += " tokens"
    if found.cost_usd_budget is not None:
        used += f", ${found.cost_usd_today or 0:.4f} of ${found.cost_usd_budget:g}"
    lines: list[RenderableType] = [head, Indented(Text(used, style="dim"), 2)]
    if found.message and found.reason != "Scoring":
        lines.append(Indented(Text(one_line(found.message, 400), style="yellow"), 2))
    lines += [Indented(_chain(one), 2) for one in found.chains]
    return Group(*lines)


def _chain(found: ChainScoresView) -> RenderableType:
    head = Text(found.chain, style="bold")
    head.append(f"  mean {found.mean:g}", style=_colour(found.mean))
    head.append(f", lowest {found.lowest}, of {found.scores} investigations in 30 days")
    lines: list[RenderableType] = [head]
    if found.tags:
        tags = ", ".join(f"{one.tag} {one.scores}" for one in found.tags)
        lines.append(Indented(Text(f"tags: {tags}"), 2))
    for tool in found.missing_tools:
        text = f"missing tool: {one_line(tool.name, 64)} ({tool.scores}): {one_line(tool.why, 300)}"
        lines.append(Indented(Text(text), 2))
    return Group(*lines)


async def ask_again(client: TarsyClient, namespace: str, name: str) -> int:
    """Asks for another score of an investigation; returns the exit status.

    Args:
        client: the API.
        namespace: of the investigation.
        name: of it.

    Raises:
        ApiUseError: the API refused.
    """
    await client.score_again(namespace, name)
    printer().print(f"{namespace}/{name}: a score is asked for; `tarsy score {name}` shows it.")
    return 0


async def ask_suite_again(client: TarsyClient, namespace: str, suite: str, days: int) -> int:
    """Asks for another score of what ended lately; returns the exit status.

    Args:
        client: the API.
        namespace: of the suite.
        suite: its name.
        days: that the investigations ended in.

    Raises:
        ApiUseError: the API refused.
    """
    await client.score_suite_again(namespace, suite, days)
    printer().print(f"{namespace}/{suite}: scores of the last {days} days are asked for; `tarsy scores {suite}` tells.")
    return 0


def _colour(points: float) -> str:
    return "green" if points >= _GOOD else "yellow" if points >= _FAIR else "red"
