"""People who decide about tool calls, out of a dict."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID, uuid5

from tarsy.engine.ports import DryRun
from tarsy.record.approvals.git_change import ChangeForGit
from tarsy.record.messages import Refusal
from tarsy.record.waiting import ApprovalAnswer, ApprovalGiven, ApprovalQuestion, ApprovalWaits
from unit.engine.memory import Record

UNTIL = datetime(2200, 1, 1, tzinfo=UTC)


@dataclass
class ScriptedPeople:
    """Implements `engine.ports.Approvals` on a record: nobody decides about a tool before `approve` or `reject`.

    Calls of tools in `managed` are refused, because GitOps manages what they would change.
    """

    record: Record
    until: datetime = UNTIL
    asked: list[ApprovalQuestion] = field(default_factory=list)
    withdrawn: dict[UUID, str] = field(default_factory=dict)
    managed: dict[str, ChangeForGit] = field(default_factory=dict)
    _decided: dict[str, bool] = field(default_factory=dict)
    _given: set[UUID] = field(default_factory=set)

    def approve(self, tool: str) -> None:
        """Approves calls of a tool."""
        self._decided[tool] = True

    def reject(self, tool: str) -> None:
        """Rejects calls of a tool."""
        self._decided[tool] = False

    async def ask(self, question: ApprovalQuestion, dry_run: DryRun) -> ApprovalAnswer:
        """Returns what people decided about the tool."""
        self.asked.append(question)
        if question.name in self.managed:
            return Refusal("ApprovalGitOps", f"{question.name} was not called.", self.managed[question.name])
        match self._decided.get(question.name):
            case None:
                return ApprovalWaits(self.until)
            case False:
                return Refusal("ApprovalRejected", f"{question.name} was not called: ann rejected it.")
            case True:
                approval = uuid5(question.call, "approval")
                if approval in self._given and approval not in self.record.approved:
                    return Refusal("ApprovalConsumed", f"{question.name} was not called: its approval is used.")
                self._given.add(approval)
                self.record.approved[approval] = question.call
                return ApprovalGiven(approval, f"{question.name} is approved by ann.")

    async def withdraw(self, call: UUID, why: str) -> None:
        """Notes that nobody needs to decide any more."""
        self.withdrawn[call] = why
