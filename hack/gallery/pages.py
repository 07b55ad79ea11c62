"""Writes the pages of the gallery from what the investigations left."""

import io
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any, cast

from hack.gallery.playing import RATES, Played
from rich.console import Console, RenderableType

from tarsy.cli.runs.why import render_finding, resolve_citations
from tarsy.client.api import TarsyClient
from tarsy.client.refusals import Right
from tarsy.engine.findings.conclusion import read_finding
from tarsy.http.views.timeline import EventView
from tarsy.record.timeline import EventType

PICTURES = "assets/gallery"
_COLUMNS = 116
_STEP = 150
_WIDTH = 138
_NOTE = "<!-- Written by `make gallery` from hack/gallery: do not edit. -->\n"
_INDEX = """# Gallery

{note}
Twelve investigations, one of each family of the [library](../library.md). `make gallery` runs them and writes these
pages.

Everything is real except the model: the engine, the chains and agents of the library, the Kubernetes tools, the
rules, the ranking of changes, the checks of every quote, and the output of `kubectl tarsy why`. The objects are
those of recorded incidents
(`tests/incidents`).

The model follows a script (`hack/gallery/scenarios`), so these pages show how the product handles answers, and not
how good the answers of a model are: see [Is it better?](../is-it-better.md). A quote that no tool
returned is marked all the same, as one is in [the example of a certificate](network.md). Tokens are counted as one per
four characters; cost is computed from example rates, in US dollars per million tokens {input} of input and {output} of
output. The clock stands at the time of the incident, so no step takes time.

| family | alert | chain | model calls | finding |
|---|---|---|---|---|
{rows}
"""


async def page_of(played: Played, *, picture: bool) -> str:
    """Returns the page of an investigation.

    Args:
        played: the investigation.
        picture: whether it has a picture.
    """
    scenario, head = played.scenario, played.head
    chosen = "selected by the type of the alert"
    if scenario.chain:
        chosen = "given by name, as `chainRef` of an AlertRoute gives it"
    parts = [
        f"# {scenario.title}\n",
        _NOTE,
        f"Family: {scenario.family}. Chain: `{head.chain}`, {chosen}.\n",
        f"{fill(scenario.notice, _WIDTH, break_on_hyphens=False)}\n",
        *([f"![The investigation in the web UI](../{PICTURES}/{head.name}.png)\n"] if picture else []),
        "## The alert\n",
        _block(scenario.alert),
        "## What the rules said\n",
        *_rules(played),
        "## The timeline in short\n",
        _timeline(played.events),
        "## The finding\n",
        _block(f"$ kubectl tarsy why {head.name} -n {head.namespace}\n{await _why(played)}"),
        "## The cost\n",
        f"{_cost(played)}\n",
    ]
    return "\n".join(parts)


def index_page(all_played: Sequence[Played]) -> str:
    """Returns the page that lists all investigations."""
    rows = [
        f"| [{one.scenario.family}]({one.head.name}.md) | {one.head.alert_type} | `{one.head.chain}` "
        f"| {one.model_calls} | {_cell(one)} |"
        for one in all_played
    ]
    return _INDEX.format(
        note=_NOTE, input=RATES["inputPerMillion"], output=f"{RATES['outputPerMillion']:g}", rows="\n".join(rows)
    )


def _cell(played: Played) -> str:
    finding = played.head.finding
    if finding is None:
        return "none"
    return f"{finding.confidence.value}: {finding.summary}".replace("|", "\\|").replace("\n", " ")


def _rules(played: Played) -> list[str]:
    told = {call.tool: call.result or "" for call in played.calls.values() if call.server == "tarsy"}
    if not told:
        return ["This chain has no stage of kind Changes, so no rule was asked.\n"]
    return [_block(told["triage"]), "And what changed, by likelihood of being the cause:\n", _block(told["changes"])]


def _timeline(events: Sequence[EventView]) -> str:
    return _block("\n".join(f"{one.seq:>2}. {_place(one)}: {_step(one)}" for one in events))


def _place(event: EventView) -> str:
    return "/".join(dict.fromkeys(part for part in (event.stage, event.agent) if part))


def _step(event: EventView) -> str:
    kind = event.type.removeprefix("llm_").replace("_", " ")
    if event.type == EventType.LLM_TOOL_CALL:
        failed = "  failed" if event.metadata.get("is_error") else ""
        return f"{kind}  {event.metadata.get('name', '')} {event.metadata.get('arguments', '')}{failed}"
    text = event.content
    if event.type == EventType.FINAL_ANALYSIS:
        finding, _ = read_finding(text)
        text = finding.summary
    line = " ".join(text.split())
    return f"{kind}  {line if len(line) <= _STEP else line[:_STEP].rstrip() + '…'}"


async def _why(played: Played) -> str:
    finding = played.head.finding
    if finding is None:
        raise SystemExit(f"{played.scenario.name}: left no finding; see what its script lacks")
    client = cast(TarsyClient, _Recorded(played))  # it is asked for tool calls only
    return _text(render_finding(await resolve_citations(client, played.head, finding)))


def _cost(played: Played) -> str:
    tools = sum(call.made for call in played.calls.values() if call.server != "tarsy")
    used = f"{played.model_calls} model calls, {tools} tool calls, {played.used.tokens:,} tokens"
    return f"{used}, {played.cost:.4f} US dollars."


def _text(shown: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=_COLUMNS, color_system=None, highlight=False, emoji=False, markup=False)
    with console.capture() as captured:
        console.print(shown)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n"


class _Recorded:
    """Reads the tool calls of a finished investigation (`GET .../trace/mcp/ID`) from memory."""

    def __init__(self, played: Played) -> None:
        self._calls = played.calls

    @property
    def namespace(self) -> str:
        """Returns the namespace of the investigation."""
        return "shop"

    async def read(self, path: str, right: Right, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Returns the call that a path names."""
        wanted = path.rpartition("/")[2]
        (found,) = (call for call in self._calls.values() if str(call.id) == wanted)
        return found.model_dump(mode="json", by_alias=True)
