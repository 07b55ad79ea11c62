"""Asks people about the tool calls of one attempt, through the rows of `tarsy.store.approvals`.

Decision: what cannot be shown to people as it would be sent is refused before they are asked: arguments that are no
plain JSON object, or too long to be read, and calls for which the agent cites no result of its run. On every attempt
the digest is computed anew from what would be sent now; another one than people signed means that they approved another
call. Right before the step that consumes the approval, the objects that the call changes are read again: one that is
not as people were shown it makes the approval stale.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from tarsy.engine.ports import DryRun
from tarsy.plan.model import ApprovalPlan, Plan, ServerPlan
from tarsy.record.approvals.approval import ApprovalState, GatedCall, plain_json
from tarsy.record.approvals.approval_targets import changed_since, target_of
from tarsy.record.approvals.git_change import ChangeForGit, ManagedObject
from tarsy.record.ids import named_uuid
from tarsy.record.messages import Access, Refusal
from tarsy.record.waiting import ApprovalAnswer, ApprovalGiven, ApprovalQuestion, ApprovalWaits
from tarsy.resources.v1alpha1.tool_approval import MAX_ARGUMENTS, MAX_CLAIM, MAX_QUOTES
from tarsy.runtime.approving.declared import TargetsUnknown
from tarsy.runtime.approving.examination import CallExaminer, ExaminedCall
from tarsy.runtime.approving.reading import TargetsUnread
from tarsy.store.approvals import ApprovalRecord, ApprovalRequest, ApprovalStore
from tarsy.store.runs.claims import ClaimedRun

APPROVAL_SECONDS = 2 * 3600.0
"""Time that people have to decide, unless the run may wait for less."""

_AWAY_SECONDS = 30.0
"""Time after which the targets of an approved call are read again, if the Kubernetes API was away."""

_OUTCOME = 1_000
_CITED = re.compile(r"\bcall_[0-9a-f]{12}\b")
_SAY = "Say in your answer what you would do with it; do not ask for it again."
_REFUSED = {
    ApprovalState.REJECTED: ("ApprovalRejected", "people rejected it"),
    ApprovalState.EXPIRED: ("ApprovalExpired", "nobody approved it in time"),
    ApprovalState.WITHDRAWN: ("ApprovalWithdrawn", "the request was withdrawn"),
    ApprovalState.STALE: (
        "ApprovalStale",
        "the objects that it would change differ from those that approvers were shown",
    ),
    ApprovalState.CONSUMED: ("ApprovalConsumed", "its approval was used before"),
}


class RunApprovals:
    """Asks for one attempt (`tarsy.engine.ports.Approvals`).

    Args:
        store: the stored approvals.
        examiner: finds out what calls of the run change.
        run: the attempt, as it was claimed.
    """

    def __init__(self, store: ApprovalStore, examiner: CallExaminer, run: ClaimedRun) -> None:
        self._store = store
        self._examiner = examiner
        self._run = run

    async def ask(self, question: ApprovalQuestion, dry_run: DryRun) -> ApprovalAnswer:
        """Asks about a call, or returns what became of the question asked before."""
        prepared = self._prepare(question)
        if isinstance(prepared, Refusal):
            return prepared
        call, server = prepared
        known = await self._store.of_call(question.call)
        if known is None:
            if await self._store.asked(self._run.id) >= question.requests:
                why = f"the run has asked for {question.requests} approvals, which is the maximum"
                return _refusal(question, "TooManyApprovals", why)
            cited = await self._store.cited(self._run.id, list(dict.fromkeys(_CITED.findall(question.answer))))
            if not cited:
                why = (
                    "people see a request only with its reasons: state in the answer that asks for the call why it "
                    "helps, and cite the callId of each result that shows it, then ask again"
                )
                return Refusal("ApprovalUncited", f"{question.name} was not called: {why}.")
            found = await self._examiner.examine(server, question.tool, call.arguments, question.account, dry_run)
            if refused := _why_not_asked(question, found, server.approval or ApprovalPlan(undetermined="Ask")):
                return refused
            undone = await self._store.undone(
                self._run.id, self._run.parent, call.server_uid, question.tool, plain_json(call.arguments)
            )
            asking = self._request(question, call, server, cited, found, undone)
            known = await self._store.ask(asking, self._run.attempt)
        return await self._answer(question, call, server, known)

    async def withdraw(self, call: UUID, why: str) -> None:
        """Withdraws a question that is still open."""
        await self._store.end(self._run.id, self._run.attempt, call, ApprovalState.WITHDRAWN, why)

    async def _answer(
        self, question: ApprovalQuestion, call: GatedCall, server: ServerPlan, known: ApprovalRecord
    ) -> ApprovalAnswer:
        if known.digest != replace(call, targets=known.targets).digest or known.investigation != self._run.id:
            return await self._stale(question, "The call is not the one that people were shown.")
        if known.state is ApprovalState.PENDING:
            return ApprovalWaits(known.expires_at)
        if known.state is not ApprovalState.APPROVED:
            return _refusal(question, *_REFUSED[known.state])
        if known.targets:
            shown = [target_of(entry) for entry in known.targets]
            try:
                now = await self._examiner.targets_now(server, question.tool, call.arguments, question.account)
            except TargetsUnread as error:
                if error.away:
                    soon = datetime.now(UTC) + timedelta(seconds=_AWAY_SECONDS)
                    return ApprovalWaits(min(known.expires_at, soon))
                return await self._stale(question, f"What it would change could not be read again: {error}.")
            except TargetsUnknown as error:
                return await self._stale(question, f"What it would change could not be read again: {error}.")
            if (changed := changed_since(shown, now)) is not None:
                return await self._stale(question, f"{changed} since people were asked.")
        sentence = f"{question.name} was approved by {', '.join(known.decided_by)}."
        undo = known.request["shown"].get("undo") or {}
        if "tool" not in undo:
            return ApprovalGiven(known.id, sentence)
        how = (
            f"If it turns out to be wrong, it can be undone by {question.server}.{undo['tool']} with the arguments "
            f"{undo['arguments']}; that call needs the approval of people too."
        )
        return ApprovalGiven(known.id, f"{sentence} {how}", how)

    async def _stale(self, question: ApprovalQuestion, why: str) -> Refusal:
        state = ApprovalState.STALE
        await self._store.end(self._run.id, self._run.attempt, question.call, state, why[:_OUTCOME])
        reason, told = _REFUSED[state]
        text = f"{question.name} was not called: {told}. {why} Look at it again; you may ask anew, with what you find."
        return Refusal(reason, text)

    def _prepare(self, question: ApprovalQuestion) -> tuple[GatedCall, ServerPlan] | Refusal:
        """Returns the call as it would be sent, with its server, or why nobody can be asked about it."""
        servers = {plan.ref: plan for plan in _servers(self._run.plan) if plan.name == question.server}
        if len(servers) != 1 or not question.definition:
            return _refusal(question, "ApprovalUnavailable", "its server or tool is not known with certainty")
        ((ref, server),) = servers.items()
        if not ref.uid or not ref.generation:
            return _refusal(
                question,
                "ApprovalUnavailable",
                "its server is not an MCPServer object, so its calls cannot be approved",
            )
        try:
            arguments = _plain_object(question.arguments)
            if len(plain_json(arguments)) > MAX_ARGUMENTS:
                raise ValueError(f"they take more than {MAX_ARGUMENTS} characters")
        except ValueError as error:
            why = f"people could not see its arguments as they would be sent: {error}; give one plain JSON object"
            return Refusal("ApprovalUnreadable", f"{question.name} was not called: {why}.")
        return GatedCall(ref.uid, ref.generation, question.tool, question.definition, arguments), server

    def _request(
        self,
        question: ApprovalQuestion,
        call: GatedCall,
        server: ServerPlan,
        cited: list[str],
        found: ExaminedCall,
        undone: str | None,
    ) -> ApprovalRequest:
        access = question.access if question.access in (Access.CHANGES, Access.DESTRUCTIVE) else Access.UNKNOWN
        ref = server.ref
        shown = {
            "call": {
                "id": question.ref,
                "server": ref.name,
                "serverNamespace": ref.namespace,
                "tool": question.tool,
                "access": access.value,
            },
            "arguments": plain_json(call.arguments),
            "preview": dict(found.preview),
            **({"undo": dict(found.undo)} if found.undo is not None else {}),
            **({"undoes": undone} if undone is not None else {}),
            "why": {"claim": question.answer[:MAX_CLAIM], "evidence": cited[:MAX_QUOTES]},
        }
        targets = tuple(target.to_dict() for target in found.targets)
        return ApprovalRequest(
            id=named_uuid(question.call, "approval"),
            investigation=self._run.id,
            interaction=question.call,
            digest=replace(call, targets=targets).digest,
            request={
                "shown": shown,
                "server": {"uid": ref.uid, "generation": ref.generation},
                "chain": self._chain(),
                "provenance": [one.as_json() for one in question.provenance],
            },
            targets=targets,
            before=found.before,
            seconds=min(APPROVAL_SECONDS, question.seconds),
            required=server.approval.required if server.approval is not None else 1,
        )

    def _chain(self) -> dict[str, str] | None:
        """The Chain whose pre-approvals count; None for a question, which a person asks."""
        chain = self._run.plan.chain
        if self._run.parent is not None or not chain.uid:
            return None
        return {"namespace": chain.namespace, "name": chain.name, "uid": chain.uid}


def _why_not_asked(question: ApprovalQuestion, found: ExaminedCall, rules: ApprovalPlan) -> Refusal | None:
    """Returns why people are not asked about a call, None if they are."""
    if found.unknown is not None and rules.undetermined == "Refuse":
        return _refusal(question, "ApprovalTargetUnknown", f"what it would change is not known: {found.unknown}")
    if not found.managed or rules.git_ops == "Warn":
        return None
    managed = [ManagedObject(object=str(target.name), managed_by=target.managed_by) for target in found.managed]
    patch = found.preview.get("diff") or question.arguments
    change = ChangeForGit.limited(question.name, managed, patch)
    text = (
        f"{question.name} was not called: {change.about}. A change would be reverted, so make it in the source. "
        f"The finding shows this change as a remedy for Git; say in your conclusion why it helps:\n\n{patch}"
    )
    return Refusal("ApprovalGitOps", text, change)


def _servers(plan: Plan) -> Iterator[ServerPlan]:
    agents = [agent for stage in plan.stages for agent in stage.members]
    agents += [plan.chat] if plan.chat is not None else []
    for agent in agents:
        yield from agent.servers


def _plain_object(text: str) -> dict[str, Any]:
    """Reads a JSON object that has one meaning only.

    Raises:
        ValueError: it is no JSON object, or has a key twice.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a key occurs twice")
        return found

    try:
        found = json.loads(text or "{}", object_pairs_hook=unique)
    except RecursionError:
        raise ValueError("they are nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("they are not a JSON object")
    return found


def _refusal(question: ApprovalQuestion, reason: str, why: str) -> Refusal:
    return Refusal(reason, f"{question.name} was not called: {why}. {_SAY}")
