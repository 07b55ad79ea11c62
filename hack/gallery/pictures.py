"""Takes a picture of each investigation in the web UI.

The web UI is the built one. Its requests are answered with what the HTTP API would return of the record in memory.
"""

import json
from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from hack.components import CHECKOUT
from hack.gallery.playing import Played
from playwright.async_api import Browser, Route, ViewportSize, WebSocketRoute, async_playwright

from tarsy.http.live.messages import EventsView, RunMessage, TimelineMessage, ToldEvent
from tarsy.http.models import View
from tarsy.http.views.common import RunRef, Spent
from tarsy.http.views.investigations import AgentView, FindingBrief, InvestigationView, Progress, StageView
from tarsy.http.web_ui import is_built
from tarsy.record.run import State
from tarsy.record.usage import Usage
from tarsy.runtime.in_process.record import ModelCallRow

_PAGE: Final = CHECKOUT / "operator" / "tarsy" / "http" / "page"
_CHROMIUM: Final = "/usr/bin/chromium"
_ARGUMENTS: Final = ("--no-sandbox", "--disable-lcd-text")
_HOST: Final = "http://gallery.invalid"
_SECONDS: Final = 30.0
_SIZE: Final = ViewportSize(width=1100, height=620)
"""Small enough for pictures of less than 150 KB."""
_TYPES: Final = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}


async def take_pictures(all_played: Sequence[Played], folder: Path) -> None:
    """Takes the pictures, and removes those that have no investigation any more."""
    if not is_built():
        raise SystemExit("the web UI is not built: run `make page`")
    _prepare(folder, {f"{one.head.name}.png" for one in all_played})
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=_CHROMIUM, args=["--no-sandbox", "--disable-lcd-text"]
        )
        for one in all_played:
            await _take(browser, one, folder / f"{one.head.name}.png")
        await browser.close()


def _prepare(folder: Path, wanted: set[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        if old.name not in wanted:
            old.unlink()


async def _take(browser: Browser, played: Played, file: Path) -> None:
    context = await browser.new_context(viewport=_SIZE, color_scheme="light")
    page = await context.new_page()
    page.set_default_timeout(_SECONDS * 1000)
    answers = _answers(played)

    async def answer(route: Route) -> None:
        path = route.request.url.removeprefix(_HOST).partition("?")[0]
        name = path.removeprefix("/page/").lstrip("/") or "index.html"
        if path.startswith("/api/v1"):
            found = answers.get(path.removeprefix("/api/v1"))
            if found is None:
                refusal = {"error": {"reason": "NotFound", "message": f"the gallery has no {path}"}}
                await route.fulfill(status=404, content_type="application/json", body=json.dumps(refusal))
            else:
                await route.fulfill(content_type="application/json", body=json.dumps(found))
        else:
            asset = _PAGE / name
            await route.fulfill(content_type=_TYPES.get(asset.suffix, "text/plain"), body=asset.read_bytes())

    await page.route(f"{_HOST}/**", answer)
    await page.route_web_socket("**/*", _silent)
    await page.goto(f"{_HOST}/#/investigations/{played.head.namespace}/{played.head.name}")
    await page.get_by_role("heading", name="Finding").wait_for()
    await page.screenshot(path=file)
    await context.close()


def _silent(_: WebSocketRoute) -> None:
    """Accepts a connection, and sends nothing."""


def _answers(played: Played) -> dict[str, Any]:
    head = played.head
    run = f"/namespaces/{head.namespace}/investigations/{head.name}"
    ref = RunRef(namespace=head.namespace, name=head.name, uid=head.uid)
    channel = f"investigation:{head.namespace}/{head.name}"
    told = [
        TimelineMessage(
            type="timelineEvent.closed",
            channel=channel,
            investigation=ref,
            id=str(event.seq),
            event=ToldEvent(**{name: getattr(event, name) for name in type(event).model_fields}),
        )
        for event in played.events
    ]
    ended = RunMessage(channel=channel, investigation=ref, run=head)
    events = _json(EventsView(items=tuple(told), id=str(len(told)), more=False))
    return {
        "/session": {"username": "you", "groups": [], "byProxy": False, "hasToken": True},
        "/namespaces": {"everywhere": True, "items": [head.namespace], "more": False},
        run: _json(_whole(played)),
        f"{run}/events": {**events, "items": [*events["items"], _json(ended)]},
        f"{run}/chatmessages": {"items": [], "continue": None},
        "/chains": {"items": [], "continue": None},
        "/llmproviders": {"items": [], "continue": None},
    }


def _json(view: View) -> dict[str, Any]:
    found: dict[str, Any] = view.model_dump(mode="json", by_alias=True)
    return found


def _whole(played: Played) -> InvestigationView:
    """Returns the investigation without a duration: the clock of the gallery stands."""
    head, record, plan = played.head, played.record, played.plan
    finding, stages = head.finding, _stages(played)
    return InvestigationView(
        namespace=head.namespace,
        name=head.name,
        uid=head.uid,
        alert_type=head.alert_type,
        chain=plan.chain.name,
        chain_namespace=plan.chain.namespace,
        author=None,
        state=head.state,
        desired_state=head.desired_state,
        attempt=1,
        revision=head.revision,
        accepted_at=record.began,
        started_at=None,
        finished_at=None,
        progress=Progress(stages_finished=len(stages), stages_planned=len(stages), current_stage=None),
        spent=_spent(list(record.model_calls.values())),
        model_calls=played.model_calls,
        tool_calls=sum(row.start.made for row in record.tool_calls.values()),
        finding=finding
        and FindingBrief(
            summary=finding.summary,
            confidence=finding.confidence,
            claims=len(finding.claims),
            supported_claims=sum(claim.supported for claim in finding.claims),
        ),
        executive_summary=head.executive_summary,
        failure=None,
        budget_exceeded=None,
        evidence_degraded=False,
        object_gone=False,
        replay=False,
        replay_of=None,
        deadline=None,
        plan_hash=plan.digest,
        interrupted_model_calls=0,
        alert=played.scenario.alert,
        runbook=None,
        executive_summary_error=None,
        evidence_missing=(),
        conditions=(),
        stages=tuple(stages),
    )


def _stages(played: Played) -> list[StageView]:
    record = played.record
    return [
        StageView(
            id=row.start.id,
            index=row.start.index,
            name=row.start.name,
            kind=row.start.kind,
            state=row.outcome.state if row.outcome else State.RUNNING,
            started_at=record.began,
            finished_at=record.began,
            parallel=row.start.parallel,
            success_policy=row.start.success_policy,
            expected_agents=row.start.expected_agents,
            failure=None,
            agents=tuple(_agents(played, row.start.id)),
        )
        for row in sorted(record.stages.values(), key=lambda row: row.start.index)
    ]


def _agents(played: Played, stage: UUID) -> list[AgentView]:
    record, found = played.record, []
    for row in sorted(record.executions.values(), key=lambda row: row.start.index):
        if row.start.stage != stage:
            continue
        calls = [call for call in record.model_calls.values() if call.start.execution == row.start.id]
        found.append(
            AgentView(
                id=row.start.id,
                name=row.start.display_name,
                agent=row.start.agent,
                strategy=row.start.strategy,
                provider=row.start.provider,
                model=row.start.model,
                state=row.outcome.state if row.outcome else State.RUNNING,
                started_at=record.began,
                finished_at=record.began,
                failure=None,
                model_calls=len(calls),
                tool_calls=sum(call.start.execution == row.start.id for call in record.tool_calls.values()),
                spent=_spent(calls),
            )
        )
    return found


def _spent(calls: Sequence[ModelCallRow]) -> Spent:
    results = [call.result for call in calls if call.result is not None]
    usage = reduce(add, (result.usage for result in results if result.usage is not None), Usage())
    cost = sum((result.cost_usd for result in results if result.cost_usd is not None), Decimal(0))
    return Spent.of(usage, cost, cost_complete=True)
