"""Defines a change that belongs into Git: the change of a call that was refused because GitOps manages its objects.

The approvals of a run make it (`tarsy.runtime.approvals`) and the timeline event of the refused call keeps it. At the
end of the run the engine puts all of them into the finding, whatever its model says.
"""

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, Field

CHANGE_FOR_GIT = "change_for_git"
"""Key of a change for Git in the metadata of the event of its call."""

MAX_CHANGES = 8
"""Changes for Git in a finding, at most; the timeline has all."""

PATCH_LIMIT = 4_000
"""Characters of the text of a change, at most; the timeline has more of it."""

_CUT = "\n[cut: the event of the call has more of it]"


class ManagedObject(BaseModel):
    """An object with what applies it from Git or from a chart."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    object: str
    managed_by: str = Field(alias="managedBy")


class ChangeForGit(BaseModel):
    """The change of a refused call, without secrets: a diff, or the arguments of the call where there is none."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    tool: str
    objects: tuple[ManagedObject, ...]
    patch: str

    @classmethod
    def limited(cls, tool: str, objects: Iterable[ManagedObject], patch: str) -> "ChangeForGit":
        """Returns a change whose text has at most `PATCH_LIMIT` characters.

        Args:
            tool: full name of the tool.
            objects: that are managed.
            patch: the change, without secrets.
        """
        text = patch if len(patch) <= PATCH_LIMIT else patch[: PATCH_LIMIT - len(_CUT)] + _CUT
        return cls(tool=tool, objects=tuple(objects), patch=text)

    @property
    def about(self) -> str:
        """Names the objects and what manages them."""
        return "; ".join(f"{one.object} is managed by {one.managed_by}" for one in self.objects)


def distinct_changes(changes: Iterable[ChangeForGit]) -> tuple[ChangeForGit, ...]:
    """Returns each change of the same objects with the same text once, in order, and at most `MAX_CHANGES`."""
    found: dict[tuple[tuple[ManagedObject, ...], str], ChangeForGit] = {}
    for change in changes:
        found.setdefault((change.objects, change.patch), change)
    return tuple(found.values())[:MAX_CHANGES]
