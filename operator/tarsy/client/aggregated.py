"""Calls TARSy through the Kubernetes API, with a kubeconfig: `record.tarsy.dev` for records, objects for the rest."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, TypeVar

from tarsy.client.acceptance import merged_acceptance
from tarsy.client.api import AWAY_SECONDS, SILENCE_SECONDS, CreatedObject, as_model, status_condition
from tarsy.client.default_type import default_alert_type
from tarsy.client.errors import ApiUseError, BrokenOff
from tarsy.client.kubeconfig import ChosenContext
from tarsy.client.planning import planned
from tarsy.client.refusals import (
    ACCEPT_TOOLS,
    ASK_SCORE,
    ASK_SUITE_SCORES,
    DECIDE,
    READ_APPROVALS,
    READ_DEFAULTS,
    READ_OBJECTS,
    READ_PLAN,
    READ_QUOTAS,
    READ_SCHEDULES,
    READ_SKILLS,
    WRITE,
    WRITE_REVIEWS,
    Right,
    namespace_of,
    refusal_error,
    refusals,
)
from tarsy.http.decision_entry import Verdict, entry_patch, why_undecidable
from tarsy.http.models import AGGREGATED_PREFIX
from tarsy.http.replay_manifest import replay_manifest
from tarsy.http.retry_manifest import NotRetried, alert_gone, retry_manifest
from tarsy.http.review_entry import review_manifest
from tarsy.http.score_entry import investigation_patch, suite_patch, why_not_rescored, why_not_scored
from tarsy.http.views.approvals import ApprovalItem, ApprovalView
from tarsy.http.views.plans import PlanQuestion, PlanView
from tarsy.http.views.quotas import QuotaView
from tarsy.http.views.reviews import ReviewResult, ReviewsBody
from tarsy.http.views.schedules import ScheduleView
from tarsy.http.views.skills import SkillView
from tarsy.kube.access import Subject, own_identity
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.kinds import path
from tarsy.resources.meta import API_VERSION, AnyResource
from tarsy.resources.parse import InvalidResource, parse_as
from tarsy.resources.v1alpha1.alert_schedule import AlertSchedule
from tarsy.resources.v1alpha1.common import MAX_GROUPS
from tarsy.resources.v1alpha1.investigation_quota import InvestigationQuota
from tarsy.resources.v1alpha1.skill import Skill

_T = TypeVar("_T")
_R = TypeVar("_R", bound=AnyResource)
WATCH_SECONDS = 50
RETRY_SECONDS = 1.0
_GENERATED = 40
DECISION_TRIES = 4
"""Times that a decision is written when the object changes at the same moment."""


class AggregatedClient:
    """Implements `TarsyClient` on the Kubernetes API.

    Args:
        client: the Kubernetes API, with the identity of the user.
        chosen: the context of the kubeconfig.
    """

    def __init__(self, client: KubeClient, chosen: ChosenContext) -> None:
        self._client = client
        self._whom = f"context {chosen.context}" if chosen.context else "the pod's ServiceAccount"
        self.namespace = chosen.namespace

    async def read(self, path: str, right: Right, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Reads a route of the aggregated API with GET.

        Args:
            path: the path of the route, without the prefix of the API group.
            right: the permission that a refusal names.
            query: query parameters; None: none.
        """
        with self._refusals(right, namespace_of(path)):
            return await self._client.read(AGGREGATED_PREFIX + path, query)

    @contextlib.asynccontextmanager
    async def streaming(
        self, path: str, right: Right, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Streams the response of a route of the aggregated API in chunks.

        Args:
            path: the path of the route, without the prefix of the API group.
            right: the permission that a refusal names.
            query: query parameters; None: none.
        """
        with self._refusals(right, namespace_of(path)):
            async with self._client.streaming(
                AGGREGATED_PREFIX + path, query, accept="text/event-stream", silence_seconds=SILENCE_SECONDS
            ) as pieces:
                yield pieces

    async def submit(self, namespace: str, alert: Mapping[str, Any]) -> CreatedObject:
        metadata, spec = {**alert.get("metadata", {}), "namespace": namespace}, alert["spec"]
        if "alertType" not in spec:
            with self._refusals(READ_DEFAULTS, namespace):
                spec = {"alertType": await default_alert_type(self._client, namespace), **spec}
        return await self._create({**alert, "metadata": metadata, "spec": spec})

    async def ask(self, namespace: str, investigation: str, question: str) -> CreatedObject:
        """Creates a ChatMessage in `namespace` with a `question` about `investigation`; returns its name and uid."""
        return await self._create(
            {
                "apiVersion": API_VERSION,
                "kind": "ChatMessage",
                "metadata": {"generateName": f"{investigation[:_GENERATED].rstrip('-.')}-", "namespace": namespace},
                "spec": {"investigationRef": {"name": investigation}, "question": question},
            }
        )

    async def replay(self, namespace: str, investigation: str, replay: Mapping[str, Any]) -> CreatedObject:
        """Creates an Investigation that replays a recorded one; returns its name and uid.

        Args:
            namespace: of both.
            investigation: the name of the recorded one.
            replay: the rest of `spec.replay`.
        """
        return await self._create(replay_manifest(namespace, investigation, replay))

    async def retry(self, namespace: str, investigation: str, chain: str | None, provider: str | None) -> CreatedObject:
        """Creates an Investigation of the alert of another one.

        Args:
            namespace: of both.
            investigation: name of the one to run again.
            chain: name of the Chain; None: the same.
            provider: name of the LLMProvider of all agents; None: as before.
        """
        with self._refusals(WRITE, namespace):
            found = await self._client.get("Investigation", namespace, investigation)
            ref = found["spec"].get("alertRef")
            gone = ref is not None and await self._client.find("Alert", namespace, ref["name"]) is None
        try:
            wanted = retry_manifest(found, chain, provider)
            if gone:
                raise alert_gone(found)
        except NotRetried as error:
            raise ApiUseError(str(error), 409) from None
        return await self._create(wanted)

    async def want(self, namespace: str, investigation: str, desired: str) -> list[str]:
        """Patches the desired state of an investigation or, if it has ended, of the unanswered questions about it.

        Args:
            namespace: of the investigation.
            investigation: its name.
            desired: Cancelled or Concluded; questions can only be cancelled.
        """
        which = f"investigation {namespace}/{investigation}"
        with self._refusals(WRITE, namespace):
            found = await self._client.get("Investigation", namespace, investigation)
            if status_condition(found, "Finished") == "True":
                if desired == "Cancelled" and (waiting := await self._unanswered(namespace, investigation)):
                    for question in waiting:
                        meta, spec = question["metadata"], {"desiredState": desired}
                        await self._client.patch(
                            "ChatMessage", namespace, meta["name"], {"metadata": {"uid": meta["uid"]}, "spec": spec}
                        )
                    return [str(question["metadata"]["name"]) for question in waiting]
                raise ApiUseError(f"{which} has ended: {found['status'].get('phase', 'Finished')}", 409)
            if desired == "Concluded" and found["spec"].get("desiredState") == "Cancelled":
                raise ApiUseError(f"{which} is being cancelled", 409)  # not every API server knows that it stays so
            body = {"metadata": {"uid": found["metadata"]["uid"]}, "spec": {"desiredState": desired}}
            await self._client.patch("Investigation", namespace, investigation, body)
        return []

    async def approvals(self, namespace: str | None, *, decided: bool) -> list[ApprovalItem]:
        """Lists the calls that wait for people in a namespace, or in all if None; with `decided` the others too."""
        with self._refusals(READ_APPROVALS, namespace):
            raw = await self._client.list("ToolApproval", namespace)
        found = [as_model(ApprovalItem, ApprovalItem.flat(one)) for one in raw]
        listed = [one for one in found if decided or one.phase == "Pending"]
        return sorted(listed, key=lambda one: (one.phase != "Pending", one.expires_at, one.namespace, one.name))

    async def approval(self, namespace: str, name: str) -> ApprovalView:
        """Reads the ToolApproval `name` in `namespace`."""
        with self._refusals(READ_APPROVALS, namespace):
            raw = await self._client.get("ToolApproval", namespace, name)
        return as_model(ApprovalView, ApprovalView.flat(raw))

    async def decide(self, shown: ApprovalView, decision: Verdict, reason: str | None) -> ApprovalView:
        """Patches the ToolApproval with a decision of the user about the call as it was shown to them.

        Args:
            shown: the call.
            decision: of the user.
            reason: of the user; None: none.
        """
        namespace, name = shown.namespace, shown.name
        user = await self._identity(namespace)
        for attempt in range(DECISION_TRIES):
            with self._refusals(DECIDE, namespace):
                raw = await self._client.get("ToolApproval", namespace, name)
            now = as_model(ApprovalView, ApprovalView.flat(raw))
            if now.uid != shown.uid:
                raise ApiUseError(f"ToolApproval {namespace}/{name} was replaced since you were shown it", 409)
            if (why := why_undecidable(now, decision, user.username, datetime.now(UTC))) is not None:
                raise ApiUseError(why, 409)
            patch = entry_patch(raw, decision, shown.arguments_digest, user.username, user.groups, reason)
            try:
                written = await self._client.patch("ToolApproval", namespace, name, patch)
            except ApiError as error:
                if error.reason != "Conflict" or attempt + 1 == DECISION_TRIES:
                    raise refusal_error(error, DECIDE, namespace, self._whom) from None
                await asyncio.sleep(RETRY_SECONDS / 10)
            else:
                return as_model(ApprovalView, ApprovalView.flat(written))
        raise AssertionError("the last attempt returns or raises")

    async def skills(self, namespace: str) -> list[SkillView]:
        """Lists the Skills in `namespace` that are valid."""
        return [SkillView.of(one) for one in await self._valid(Skill, READ_SKILLS, namespace)]

    async def schedules(self, namespace: str | None) -> list[ScheduleView]:
        """Lists the AlertSchedules of a namespace, or of all if None, that are valid."""
        return [ScheduleView.of(one) for one in await self._valid(AlertSchedule, READ_SCHEDULES, namespace)]

    async def quotas(self, namespace: str | None) -> list[QuotaView]:
        """Lists the InvestigationQuotas of a namespace, or of all if None, that are valid."""
        return [QuotaView.of(one) for one in await self._valid(InvestigationQuota, READ_QUOTAS, namespace)]

    async def _valid(self, kind: type[_R], right: Right, namespace: str | None) -> list[_R]:
        """Lists the valid objects of a kind by namespace and name."""
        with self._refusals(right, namespace):
            raw = await self._client.list(kind.KIND, namespace)
        found = []
        for one in raw:
            with contextlib.suppress(InvalidResource):
                found.append(parse_as(kind, one))
        return sorted(found, key=lambda one: (one.metadata.namespace, one.metadata.name))

    async def plan(self, namespace: str, question: PlanQuestion) -> PlanView:
        """Plans an alert from the objects that the user may list."""
        with self._refusals(READ_PLAN, namespace):
            return await planned(self._client, namespace, question)

    async def _identity(self, namespace: str) -> Subject:
        try:
            return await own_identity(self._client)
        except ApiError as error:
            if error.status == 404:
                text = (
                    "this Kubernetes API does not tell who you are (SelfSubjectReview, 1.28), so it has no policy "
                    "tarsy-approve (1.30) either: a decision would not count, and nothing that needs approval is sent"
                )
                raise ApiUseError(text, 404) from None
            if error.status == 403:
                text = (
                    "this Kubernetes API does not let you ask who you are (SelfSubjectReview): it is older than 1.28, "
                    "and a decision would not count, or it lacks the ClusterRoleBinding system:basic-user"
                )
                raise ApiUseError(text, 404) from None
            raise refusal_error(error, DECIDE, namespace, self._whom) from None

    async def review(self, namespace: str, body: ReviewsBody) -> list[ReviewResult]:
        """Creates a Review in `namespace` for each investigation of `body`; returns what became of each."""
        results = []
        for name in dict.fromkeys(body.investigations):
            with self._refusals(WRITE_REVIEWS, namespace):
                found = await self._client.find("Investigation", namespace, name)
            manifest = review_manifest(namespace, name, body, found)
            try:
                made = await self._client.create(manifest)
            except ApiError as error:
                refused = refusal_error(error, WRITE_REVIEWS, namespace, self._whom)
                if error.transient or error.status == 401:
                    raise refused from None
                results.append(ReviewResult(investigation=name, review=None, error=str(refused)))
            else:
                results.append(ReviewResult(investigation=name, review=made["metadata"]["name"], error=None))
        return results

    async def score_again(self, namespace: str, investigation: str) -> None:
        """Patches the request for another score into an `investigation` in `namespace`."""
        with self._refusals(ASK_SCORE, namespace):
            found = await self._client.find("Investigation", namespace, investigation)
            if (why := why_not_scored(found, f"{namespace}/{investigation}")) is not None or found is None:
                raise ApiUseError(why[1] if why else "", why[0] if why else 404)
            body = investigation_patch(found, datetime.now(UTC))
            await self._client.patch("Investigation", namespace, investigation, body)

    async def score_suite_again(self, namespace: str, suite: str, days: int) -> None:
        """Patches the request for another score of what ended in the last `days` into a `suite` in `namespace`."""
        with self._refusals(ASK_SUITE_SCORES, namespace):
            found = await self._client.find("EvalSuite", namespace, suite)
            if (why := why_not_rescored(found, f"{namespace}/{suite}")) is not None or found is None:
                raise ApiUseError(why[1] if why else "", why[0] if why else 404)
            body = suite_patch(found, days, datetime.now(UTC))
            await self._client.patch("EvalSuite", namespace, suite, body)

    async def accept(self, namespace: str, server: str, digests: Mapping[str, str], rest: Mapping[str, Any]) -> str:
        """Patches the user's own entry in `spec.acceptedTools` of an MCPServer; returns the username.

        Args:
            namespace: of the MCPServer.
            server: its name.
            digests: the accepted definitions by tool.
            rest: further fields of the entry.
        """
        with self._refusals(ACCEPT_TOOLS, namespace):
            user = await own_identity(self._client)
            found = await self._client.get("MCPServer", namespace, server)
            entries = found["spec"].get("acceptedTools") or []
            accepted = merged_acceptance(entries, user.username, user.groups[:MAX_GROUPS], digests, rest)
            seen = {key: found["metadata"][key] for key in ("uid", "resourceVersion")}
            body = {"metadata": seen, "spec": {"acceptedTools": accepted}}
            await self._client.patch("MCPServer", namespace, server, body)
        return user.username

    async def until(
        self,
        kind: str,
        namespace: str,
        name: str,
        settled: Callable[[Mapping[str, Any]], _T | None],
        about: str | None = None,
    ) -> _T:
        """Watches an object until `settled` returns a value for one of its states; returns that value.

        Args:
            kind: Alert, Investigation or ChatMessage.
            namespace: of the object.
            name: of the object.
            settled: receives each state of the object; returns None to continue.
            about: not used, because every kind is watched by its own name.
        """
        clock = asyncio.get_running_loop().time
        seen = clock()
        while True:
            began = clock()
            try:
                with self._refusals(READ_OBJECTS, namespace):
                    async with contextlib.aclosing(self._states(kind, namespace, name)) as states:
                        async for state in states:
                            seen = clock()
                            if (said := settled(state)) is not None:
                                return said
            except BrokenOff:
                if clock() > seen + AWAY_SECONDS:
                    raise
            if clock() < began + RETRY_SECONDS:  # a watch that ends at once is not begun at once
                await asyncio.sleep(RETRY_SECONDS)

    async def names(self, kind: str, namespace: str) -> list[str]:
        return [str(obj["metadata"]["name"]) for obj in await self.objects(kind, namespace)]

    async def questions(self, namespace: str, investigation: str) -> list[str]:
        return [str(obj["metadata"]["name"]) for obj in await self._about(namespace, investigation)]

    async def _unanswered(self, namespace: str, investigation: str) -> list[dict[str, Any]]:
        """Returns the unanswered questions about an investigation."""
        return [
            obj
            for obj in await self._about(namespace, investigation)
            if status_condition(obj, "Finished") != "True" and obj["spec"].get("desiredState") != "Cancelled"
        ]

    async def _about(self, namespace: str, investigation: str) -> list[dict[str, Any]]:
        found = [
            obj
            for obj in await self.objects("ChatMessage", namespace)
            if obj.get("spec", {}).get("investigationRef", {}).get("name") == investigation
        ]
        return sorted(found, key=_turn)

    async def objects(self, kind: str, namespace: str | None) -> list[dict[str, Any]]:
        """Lists the objects of a kind, of all namespaces if None. Raises ApiUseError."""
        with self._refusals(READ_OBJECTS, namespace):
            return await self._client.list(kind, namespace)

    async def _create(self, obj: Mapping[str, Any]) -> CreatedObject:
        with self._refusals(WRITE, obj["metadata"]["namespace"]):
            return CreatedObject.of((await self._client.create(obj))["metadata"])

    async def _states(self, kind: str, namespace: str, name: str) -> AsyncGenerator[dict[str, Any]]:
        """Yields the states of an object, until the server ends the watch."""
        now = await self._client.get(kind, namespace, name)
        yield now
        query = {
            "watch": "true",
            "fieldSelector": f"metadata.name={name}",
            "resourceVersion": now["metadata"]["resourceVersion"],
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        async with self._client.streaming(
            path(kind, namespace), query, accept="application/json", silence_seconds=SILENCE_SECONDS
        ) as pieces:
            async for event in _lines(pieces):
                if event.get("type") == "ERROR":  # the version is too old to watch from: begin anew
                    return
                obj = event.get("object") or {}
                if event.get("type") == "DELETED" or obj.get("metadata", {}).get("uid") != now["metadata"]["uid"]:
                    raise ApiUseError(f"{kind} {namespace}/{name} was deleted")
                yield obj

    def _refusals(self, right: Right, namespace: str | None) -> AbstractContextManager[None]:
        return refusals(right, namespace, self._whom)


def _turn(obj: Mapping[str, Any]) -> tuple[str, int, str]:
    """Returns the sort key of the order in which questions are answered (`controllers/chat_message.py`)."""
    meta = obj["metadata"]
    version = str(meta.get("resourceVersion", ""))
    return str(meta.get("creationTimestamp")), int(version) if version.isdigit() else 0, str(meta["name"])


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    """Yields the lines of a watch, one JSON object each."""
    rest = b""
    async for piece in pieces:
        *ended, rest = (rest + piece).split(b"\n")
        for line in ended:
            if line.strip():
                yield json.loads(line)
