"""Asks people about the tool calls of one attempt, through the rows of `tarsy.store.approvals`.

Decision: what cannot be shown to people as it would be sent is refused before they are asked: arguments that are no
plain JSON object, or too long to be read, and calls for which the agent cites no result of its run. On every attempt
the digest is computed anew from what would be sent now; another one than people signed means that they approved another
call.
"""

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from tarsy.plan.model import ObjectRef, Plan
from tarsy.record.approval import ApprovalState, GatedCall, plain_json
from tarsy.record.ids import named_uuid
from tarsy.record.messages import Access, Refusal
from tarsy.record.waiting import ApprovalAnswer, ApprovalGiven, ApprovalQuestion, ApprovalWaits
from tarsy.resources.v1alpha1.tool_approval import MAX_ARGUMENTS, MAX_CLAIM, MAX_QUOTES
from tarsy.store.approvals import ApprovalRecord, ApprovalRequest, ApprovalStore
from tarsy.store.claims import ClaimedRun

APPROVAL_SECONDS = 2 * 3600.0
"""Time that people have to decide, unless the run may wait for less."""

_CITED = re.compile(r"\bcall_[0-9a-f]{12}\b")
_SAY = "Say in your answer what you would do with it; do not ask for it again."
_REFUSED = {
    ApprovalState.REJECTED: ("ApprovalRejected", "people rejected it"),
    ApprovalState.EXPIRED: ("ApprovalExpired", "nobody approved it in time"),
    ApprovalState.WITHDRAWN: ("ApprovalWithdrawn", "the request was withdrawn"),
    ApprovalState.STALE: ("ApprovalStale", "what it would change is not what people were shown any more"),
    ApprovalState.CONSUMED: ("ApprovalConsumed", "its approval was used before"),
}


class RunApprovals:
    """Asks for one attempt (`tarsy.engine.ports.Approvals`).

    Args:
        store: the stored approvals.
        run: the attempt, as it was claimed.
    """

    def __init__(self, store: ApprovalStore, run: ClaimedRun) -> None:
        self._store = store
        self._run = run

    async def ask(self, question: ApprovalQuestion) -> ApprovalAnswer:
        """Asks about a call, or returns what became of the question asked before."""
        prepared = self._prepare(question)
        if isinstance(prepared, Refusal):
            return prepared
        call, server = prepared
        known = await self._store.of_call(question.call)
        if known is None:
            if await self._store.asked(self._run.id) >= question.requests:
                why = f"the run has asked for {question.requests} approvals, which is as many as it may"
                return _refusal(question, "TooManyApprovals", why)
            cited = await self._store.cited(self._run.id, list(dict.fromkeys(_CITED.findall(question.answer))))
            if not cited:
                why = (
                    "people see a request only with its reasons: state in the answer that asks for the call why it "
                    "helps, and cite the callId of each result that shows it, then ask again"
                )
                return Refusal("ApprovalUncited", f"{question.name} was not called: {why}.")
            known = await self._store.ask(self._request(question, call, server, cited), self._run.attempt)
        return await self._answer(question, call, known)

    async def withdraw(self, call: UUID, why: str) -> None:
        """Withdraws a question that is still open."""
        await self._store.end(self._run.id, self._run.attempt, call, ApprovalState.WITHDRAWN, why)

    async def _answer(self, question: ApprovalQuestion, call: GatedCall, known: ApprovalRecord) -> ApprovalAnswer:
        if known.digest != call.digest or known.investigation != self._run.id:
            state, why = ApprovalState.STALE, "The call is not the one that people were shown."
            await self._store.end(self._run.id, self._run.attempt, question.call, state, why)
            return _refusal(question, *_REFUSED[state])
        if known.state is ApprovalState.PENDING:
            return ApprovalWaits(known.expires_at)
        if known.state is ApprovalState.APPROVED:
            return ApprovalGiven(known.id, f"{question.name} was approved by {', '.join(known.decided_by)}.")
        return _refusal(question, *_REFUSED[known.state])

    def _prepare(self, question: ApprovalQuestion) -> tuple[GatedCall, ObjectRef] | Refusal:
        """Returns the call as it would be sent, with its server, or why nobody can be asked about it."""
        servers = {ref for name, ref in _servers(self._run.plan) if name == question.server}
        if len(servers) != 1 or not question.definition:
            return _refusal(question, "ApprovalUnavailable", "its server or tool is not known for certain")
        (server,) = servers
        if not server.uid or not server.generation:
            return _refusal(question, "ApprovalUnavailable", "its server is no object that people can approve for")
        try:
            arguments = _plain_object(question.arguments)
            if len(plain_json(arguments)) > MAX_ARGUMENTS:
                raise ValueError(f"they take more than {MAX_ARGUMENTS} characters")
        except ValueError as error:
            why = f"people could not see its arguments as they would be sent: {error}; give one plain JSON object"
            return Refusal("ApprovalUnreadable", f"{question.name} was not called: {why}.")
        call = GatedCall(server.uid, server.generation, question.tool, question.definition, arguments)
        return call, server

    def _request(
        self, question: ApprovalQuestion, call: GatedCall, server: ObjectRef, cited: list[str]
    ) -> ApprovalRequest:
        access = question.access if question.access in (Access.CHANGES, Access.DESTRUCTIVE) else Access.UNKNOWN
        shown = {
            "call": {
                "id": question.ref,
                "server": server.name,
                "serverNamespace": server.namespace,
                "tool": question.tool,
                "access": access.value,
            },
            "arguments": plain_json(call.arguments),
            "preview": {"kind": "None"},
            "why": {"claim": question.answer[:MAX_CLAIM], "evidence": cited[:MAX_QUOTES]},
        }
        return ApprovalRequest(
            id=named_uuid(question.call, "approval"),
            investigation=self._run.id,
            interaction=question.call,
            digest=call.digest,
            request={"shown": shown, "server": {"uid": server.uid, "generation": server.generation}},
            targets=(),
            before=None,
            seconds=min(APPROVAL_SECONDS, question.seconds),
            required=1,
        )


def _servers(plan: Plan) -> Iterator[tuple[str, ObjectRef]]:
    agents = [agent for stage in plan.stages for agent in stage.agents]
    agents += [plan.chat] if plan.chat is not None else []
    for agent in agents:
        for server in agent.servers:
            yield server.name, server.ref


def _plain_object(text: str) -> dict[str, Any]:
    """Reads a JSON object that has one meaning only.

    Raises:
        ValueError: it is no JSON object, or has a key twice.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a key is there twice")
        return found

    try:
        found = json.loads(text or "{}", object_pairs_hook=unique)
    except RecursionError:
        raise ValueError("they are nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("they are no JSON object")
    return found


def _refusal(question: ApprovalQuestion, reason: str, why: str) -> Refusal:
    return Refusal(reason, f"{question.name} was not called: {why}. {_SAY}")
