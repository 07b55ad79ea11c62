"""Examines a call that needs approval: the objects that it changes, who manages them, and what people are shown."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tarsy.engine.conversation.masking import Mask
from tarsy.engine.ports import DryRun
from tarsy.plan.model import ApprovalPlan, MaskingPlan, ServerPlan
from tarsy.record.approvals.approval_targets import TargetName, TargetState, state_of
from tarsy.resources.v1alpha1.tool_approval import MAX_CLAIM
from tarsy.runtime.approving.declared import DeclaredTarget, TargetsUnknown, as_bound, declared_targets
from tarsy.runtime.approving.preview import shown_answer, shown_objects
from tarsy.runtime.approving.reading import TargetsUnread
from tarsy.runtime.approving.undo import masked_image, undo_of

OBJECTS_UNDECLARED = (
    "The MCPServer does not declare the objects that this call changes (spec.approval), so there is no preview, a "
    "change of them before the call is not noticed, and it is not known whether Argo CD, Flux or Helm manages them. If "
    "one does, it may revert the change."
)
"""Note for people who decide about a call of a server that declares nothing."""

ReadObjects = Callable[[str | None, Sequence[TargetName]], Awaitable[list[Mapping[str, Any] | None]]]
"""Reads objects as a ServiceAccount of the run's namespace; raises TargetsUnread."""


@dataclass(frozen=True, slots=True)
class ExaminedCall:
    """Holds the facts about a call.

    Args:
        targets: the objects that it changes; empty: not known.
        preview: for people.
        unknown: why the objects are not known.
        before: the objects without secrets, in the order of the targets; None: the server declares no undo.
        undo: the call that would undo it, or why there is none; None: the server declares none.
    """

    targets: tuple[TargetState, ...] = ()
    preview: Mapping[str, str] = field(default_factory=lambda: {"kind": "None"})
    unknown: str | None = None
    before: tuple[Mapping[str, Any] | None, ...] | None = None
    undo: Mapping[str, str] | None = None

    @property
    def managed(self) -> tuple[TargetState, ...]:
        """The objects that Argo CD, Flux or Helm manages."""
        return tuple(target for target in self.targets if target.managed_by)


class CallExaminer:
    """Examines the calls of one run.

    Args:
        read: reads objects.
        mask_of: returns what removes secrets, by the setting of a server.
    """

    def __init__(self, read: ReadObjects, mask_of: Callable[[MaskingPlan], Mask]) -> None:
        self._read = read
        self._mask_of = mask_of

    async def targets_now(
        self, server: ServerPlan, tool: str, arguments: Mapping[str, Any], account: str | None
    ) -> tuple[TargetState, ...]:
        """Reads the objects that a call changes, as they are now.

        Args:
            server: the server of the tool.
            tool: name of the tool.
            arguments: of the call.
            account: ServiceAccount to read with.

        Raises:
            TargetsUnknown: the call does not tell them.
            TargetsUnread: they could not be read.
        """
        declared = declared_targets(server.approval, tool, as_bound(server.reach, arguments))
        return (await self._states(declared, account))[0]

    async def examine(
        self, server: ServerPlan, tool: str, arguments: Mapping[str, Any], account: str | None, dry_run: DryRun
    ) -> ExaminedCall:
        """Reads the objects that a call changes, and makes the preview. Never raises.

        Args:
            server: the server of the tool.
            tool: name of the tool.
            arguments: of the call.
            account: ServiceAccount to read with.
            dry_run: tries the call without an effect.
        """
        rules = server.approval
        if rules is None:
            return ExaminedCall(preview={"kind": "None", "note": OBJECTS_UNDECLARED}, unknown=OBJECTS_UNDECLARED)
        declared: list[DeclaredTarget] = []
        states: tuple[TargetState, ...] = ()
        objects: list[Mapping[str, Any] | None] = []
        unknown: str | None = None
        try:
            declared = declared_targets(rules, tool, as_bound(server.reach, arguments))
            states, objects = await self._states(declared, account)
        except (TargetsUnknown, TargetsUnread) as error:
            unknown, declared = str(error), []
        if unknown is not None and rules.undetermined == "Refuse":
            return ExaminedCall(unknown=unknown)
        mask = self._mask_of(server.masking)
        preview = await self._preview(rules, tool, declared, objects, mask, dry_run)
        notes = [preview.get("note", ""), f"The objects that it changes are not known: {unknown}." if unknown else ""]
        note = " ".join(text for text in notes if text)[:MAX_CLAIM]
        found = ExaminedCall(states, {**preview, **({"note": note} if note else {})}, unknown)
        if rules.undo_rule(tool) is None:
            return found
        images = [await asyncio.to_thread(masked_image, obj, mask) for obj in objects]
        undo = undo_of(rules, tool, as_bound(server.reach, arguments), [usable for _, usable in images])
        return replace(found, before=tuple(kept for kept, _ in images), undo=undo)

    async def _states(
        self, declared: Sequence[DeclaredTarget], account: str | None
    ) -> tuple[tuple[TargetState, ...], list[Mapping[str, Any] | None]]:
        names = [one.name for one in declared]
        objects = await self._read(account, names)
        try:
            states = tuple(state_of(name, obj) for name, obj in zip(names, objects, strict=True))
        except ValueError as error:
            raise TargetsUnread(str(error)) from error
        return states, objects

    async def _preview(
        self,
        rules: ApprovalPlan,
        tool: str,
        declared: Sequence[DeclaredTarget],
        objects: Sequence[Mapping[str, Any] | None],
        mask: Mask,
        dry_run: DryRun,
    ) -> dict[str, str]:
        note = ""
        if (rule := rules.dry_run_rule(tool)) is not None:
            outcome = await dry_run(rule.argument, rule.value)
            if outcome is None:
                note = f"The tool declares no argument {rule.argument}, so its dry run was not made."
            elif outcome.is_error:
                note = f"Its dry run failed: {outcome.content}"
            else:
                text = await asyncio.to_thread(shown_answer, outcome.content, declared, objects, mask)
                return {"kind": "DryRun", "diff": text}
        found = {"note": note} if note else {}
        if not declared:
            return {"kind": "None", **found}
        return {"kind": "Read", "diff": await asyncio.to_thread(shown_objects, declared, objects, mask), **found}
