"""Notifies people of the start and the end of runs, as chains and routes declare it.

Watches: the record, through the publisher, and the outbox in Postgres, every two seconds. Decides: whom a run's chain,
and the route that its alert came by, want told of this. Writes: rows of the outbox before the run counts as published,
messages to Slack and webhooks, and Events that say what became of them. No run depends on it: what cannot be sent is
tried for some hours, then given up. A process that dies between sending and noting it sends it once more, same id.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Literal, Protocol
from uuid import UUID

from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.machinery.context import KubernetesPorts
from tarsy.controllers.machinery.lookup import look_up
from tarsy.controllers.notifications.request_text import (
    CannotFillIn,
    alert_values,
    filled_body,
    filled_url,
    pointers,
)
from tarsy.controllers.notifications.text import request_values, slack_message, webhook_body
from tarsy.controllers.notifications.wire import SEND_SECONDS, SendResult
from tarsy.kube.events import ObjectReference
from tarsy.observe.metric_table import NOTIFICATIONS
from tarsy.observe.metrics import Metrics
from tarsy.record.reading.conditions import phase
from tarsy.record.run import InvestigationRecord, State
from tarsy.record.waiting import WaitReason
from tarsy.resources.v1alpha1 import Alert, AlertRoute, Chain, Investigation
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.notify import NotifyTarget, RequestTarget, SlackTarget, WebhookTarget
from tarsy.store.errors import StoreError
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.notices import Notice, NoticeOccasion, Notices
from tarsy.store.slack import SlackQuestions

_log = logging.getLogger(__name__)
CHANNEL_ID = re.compile(r"[A-Z][A-Z0-9]{1,31}")

ROUND_SECONDS = 2.0
_AT_ONCE = 8
CLAIM_SECONDS = SEND_SECONDS * 3
"""Seconds for which a claimed notice is not claimed by another controller."""

MOST_TRIES = 12
GIVE_UP_SECONDS = 6 * 3600.0
FIRST_PAUSE_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 1800.0


class Sends(Protocol):
    """Sends messages; see `notification_wire.Sender`."""

    async def webhook(self, namespace: str, target: WebhookTarget, identity: UUID, body: bytes) -> SendResult:
        """Sends a signed request to a webhook.

        Args:
            namespace: of the object that declares the target, and of the Secret with the signing key.
            target: the webhook.
            identity: id of the message, the same in every retry, so that the receiver can drop duplicates.
            body: the JSON.
        """
        ...

    async def request(self, namespace: str, target: RequestTarget, url: str, body: bytes) -> SendResult:
        """Sends a request to the API of another system.

        Args:
            namespace: of the object that declares the target, and of the Secrets of its headers.
            target: method and headers.
            url: filled in.
            body: the JSON, filled in.
        """
        ...

    async def slack(
        self, namespace: str, target: SlackTarget, message: Mapping[str, Any], thread: str | None
    ) -> SendResult:
        """Sends a message to a Slack channel.

        Args:
            namespace: of the object that declares the target, and of the Secret with the token.
            target: the channel, and the reference to its token.
            message: the arguments of `chat.postMessage`, without the channel and the thread.
            thread: the timestamp of the Slack message to reply to; None: start a new thread.
        """
        ...


@dataclass(frozen=True, slots=True)
class SlackThreads:
    """Says in which threads people may ask: those at `api_url`, which the administrator names.

    Another address may be anybody's, and could claim a thread that is not its own.
    """

    questions: SlackQuestions
    api_url: str


@dataclass(frozen=True, slots=True)
class Outbox:
    """Holds the due notifications and the sender.

    `page` is the address of the web UI for links (None: no links), `threads` those in which people may ask.
    """

    notices: Notices
    sender: Sends
    page: str | None = None
    threads: SlackThreads | None = None


class Notifications:
    """Queues notifications and sends them.

    Args:
        cache: the objects of the cluster.
        outbox: the notifications that are due, and the sender.
        reads: the record.
        kubernetes: is asked for Alerts that the cache does not have, and takes Events.
        pause: seconds until the next try, by the number of tries.
        metrics: what is counted for people to see.
    """

    def __init__(
        self,
        cache: Cache,
        outbox: Outbox,
        reads: Reads,
        kubernetes: KubernetesPorts,
        *,
        pause: Callable[[int], float] | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._cache = cache
        self._notices = outbox.notices
        self._sender = outbox.sender
        self._page = outbox.page
        self._threads = outbox.threads
        self._reads = reads
        self._client = kubernetes.client
        self._events = kubernetes.events
        self._pause = pause or _pause
        self._metrics = metrics or Metrics()

    async def note(self, record: InvestigationRecord, investigation: Investigation) -> None:
        """Queues the notifications of a run; safe to repeat. A replay has none.

        All targets are told that a run waits for people, whatever their `when`: without people it does not go on.

        Raises:
            ApiError: the Kubernetes API is away, and the alert of the run is not known.
            StoreError: Postgres is away or refused.
        """
        if record.state is State.PENDING or record.replay:
            return
        occasion: NoticeOccasion = "ended" if record.state.finished else "started"
        waits = record.parked is not None and record.parked.reason == WaitReason.APPROVAL
        word = phase(record) if record.state.finished else "Started"
        alert, uid = await self._alert(investigation)
        incident = alert.incident_key if alert else None
        thread = str(record.id) if incident is None else f"{record.namespace}/{incident}"
        chain = self._cache.get(Chain, record.chain_namespace, record.chain)
        for source in (chain, await self._route(uid)):
            for target in source.spec.notify if source is not None else ():
                if source is not None and word in target.when:
                    settings = _settings(source, target, alert)
                    await self._notices.owe(record.id, f"{source}: {target.name}", occasion, settings, thread)
                if source is not None and waits and record.parked is not None and target.request is None:
                    settings = _settings(source, target, alert)
                    settings["waitsFor"] = record.parked.sentence
                    name, number = f"{source}: {target.name}", record.attempt
                    await self._notices.owe(record.id, name, "waits", settings, thread, number=number)

    async def round(self) -> None:
        """Sends all that is due.

        Raises:
            StoreError: Postgres is away.
        """
        while taken := await self._notices.take(_AT_ONCE, CLAIM_SECONDS):
            async with asyncio.TaskGroup() as group:
                for notice in taken:
                    group.create_task(self._send(notice))
            await self._notices.forget_threads()

    async def _alert(self, investigation: Investigation) -> tuple[AlertContent | None, str | None]:
        """Returns the alert of a run (None: it was deleted), and the uid of its Alert object if it has one."""
        spec = investigation.spec
        if spec.alert_ref is None:
            return spec.alert, None
        namespace, ref = investigation.metadata.namespace, spec.alert_ref
        alert = await look_up(Alert, namespace, ref.name, self._cache, self._client, uid=ref.uid)
        return (None, ref.uid) if alert is None else (alert.spec, alert.metadata.uid)

    async def _route(self, alert_uid: str | None) -> AlertRoute | None:
        """Finds the route that an Alert came by as the intake recorded it: the Alert itself proves nothing."""
        if alert_uid is None or not any(route.spec.notify for route in self._routes()):
            return None
        name = await self._notices.route(alert_uid)
        return None if name is None else self._cache.get(AlertRoute, *name)

    def _routes(self) -> Iterator[AlertRoute]:
        for key in self._cache.keys_of(AlertRoute.KIND):
            if (route := self._cache.get(AlertRoute, key.namespace, key.name)) is not None:
                yield route

    async def _send(self, notice: Notice) -> None:
        """Sends a notification and records the result; while Postgres is away it stays due."""
        try:
            record = await self._reads.record(notice.investigation)
            if record is None:
                return  # its row went with the record
            target = NotifyTarget.model_validate(notice.settings["target"])
            answer = await self._deliver(notice, target, record)
            if answer.problem is None:
                await self._notices.sent(notice.id)
                self._count(target, "sent")
                await self._tell(record, "Notified", f"{notice.target} was notified: {_what(notice)}.", "Normal")
            elif not answer.passing or notice.tries >= MOST_TRIES or notice.age >= GIVE_UP_SECONDS:
                await self._notices.failed(notice.id, answer.problem)
                self._count(target, "given_up")
                tries = f"{notice.tries} tries"
                text = f"{notice.target} could not be notified that {_what(notice)} ({tries}): {answer.problem}."
                await self._tell(record, "NotificationFailed", text, "Warning")
            else:
                self._count(target, "failed")
                pause = max(self._pause(notice.tries), answer.after or 0.0)
                _log.info("%s could not be notified; retrying in %.0f s: %s", notice.target, pause, answer.problem)
                await self._notices.later(notice.id, answer.problem, pause)
        except StoreError as error:
            _log.warning("the result of a notification to %s could not be recorded: %s", notice.target, error)

    def _count(self, target: NotifyTarget, outcome: Literal["sent", "failed", "given_up"]) -> None:
        kind = "slack" if target.slack is not None else "request" if target.request is not None else "webhook"
        self._metrics.add(NOTIFICATIONS, kind=kind, outcome=outcome)

    async def _deliver(self, notice: Notice, target: NotifyTarget, record: InvestigationRecord) -> SendResult:
        namespace, waits_for = str(notice.settings["namespace"]), str(notice.settings.get("waitsFor") or "")
        if target.webhook is not None:
            body = webhook_body(record, notice.occasion, notice.made_at.astimezone(UTC), self._page, waits_for)
            return await self._sender.webhook(namespace, target.webhook, notice.id, body)
        if target.request is not None:
            values = request_values(record, notice.occasion, self._page)
            values |= {f"alert:{at}": str(value) for at, value in notice.settings.get("alert", {}).items()}
            try:
                url, body = filled_url(target.request.url, values), filled_body(target.request.body, values)
            except CannotFillIn as why:
                return SendResult(str(why), passing=False)
            return await self._sender.request(namespace, target.request, url, body)
        if target.slack is None:
            return SendResult("it sets none of slack, webhook and request", passing=False)
        where = f"{namespace}/{target.slack.token_secret_ref.name} {target.slack.channel}"
        thread = await self._notices.thread(where, notice.thread)
        message = slack_message(record, notice.occasion, self._page, waits_for)
        answer = await self._sender.slack(namespace, target.slack, message, thread)
        if answer.ts is not None:
            await self._notices.keep_thread(where, notice.thread, answer.ts)
            await self._note_thread(target.slack, answer, thread, record)
        return answer

    async def _note_thread(
        self, target: SlackTarget, answer: SendResult, thread: str | None, record: InvestigationRecord
    ) -> None:
        """Notes that people may ask about an investigation in the thread where it was told."""
        channel = answer.answer.get("channel")
        if self._threads is None or target.api_url.rstrip("/") != self._threads.api_url.rstrip("/"):
            return
        if answer.ts is None or not isinstance(channel, str) or not CHANNEL_ID.fullmatch(channel):
            return
        if thread is None:
            await self._threads.questions.begin_thread(channel, answer.ts, record.id)
        else:
            await self._threads.questions.join_thread(channel, thread, record.id)

    async def _tell(
        self, record: InvestigationRecord, reason: str, message: str, kind: Literal["Normal", "Warning"]
    ) -> None:
        # Not from the cache: a controller that has just started sends before the watch tells of the object.
        about = ObjectReference(Investigation.KIND, record.namespace, record.name, str(record.id))
        await self._events.tell(about, reason, message, kind=kind)


def _settings(source: Chain | AlertRoute, target: NotifyTarget, alert: AlertContent | None) -> dict[str, Any]:
    """Returns what a notification needs later: the target as it is now, and the values of the alert that it names."""
    settings = {"namespace": source.metadata.namespace, "target": target.to_dict()}
    if target.request is not None:
        settings["alert"] = alert_values(alert.data if alert else None, pointers(target.request))
    return settings


def _what(notice: Notice) -> str:
    match notice.occasion:
        case "started":
            return "the run has started"
        case "waits":
            return "the run waits for people"
        case "ended":
            return "the run has ended"


def _pause(tries: int) -> float:
    return float(min(FIRST_PAUSE_SECONDS * 2 ** (tries - 1), _LONGEST_PAUSE_SECONDS))
