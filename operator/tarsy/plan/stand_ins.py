"""Finds fallbacks that name the provider that they should replace.

Decision: an entry of a chain's list is useless when every agent of the run that would change to it is served by it
already. A list of the defaults serves chains that choose other providers too: there only a list without any other
provider counts, beside a provider that the same object chooses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tarsy.plan.errors import FieldPath
from tarsy.resources.v1alpha1.investigation_defaults import InvestigationDefaults


@dataclass(slots=True)
class _Seen:
    name: str
    other: bool = False
    chosen_elsewhere: bool = False


@dataclass(slots=True)
class StandsIn:
    """The entries of the fallback lists of a plan, and whether each is another provider for some agent."""

    _lists: dict[FieldPath, dict[int, _Seen]] = field(default_factory=dict)

    def note(self, at: FieldPath, index: int, name: str, itself: bool, chosen_at: FieldPath) -> None:
        """Notes one entry for one agent.

        Args:
            at: the field of the list.
            index: of the entry.
            name: of its provider.
            itself: whether the agent has that provider already.
            chosen_at: the field that chose the agent's provider.
        """
        seen = self._lists.setdefault(at, {}).setdefault(index, _Seen(name))
        seen.other |= not itself
        seen.chosen_elsewhere |= (chosen_at.kind, chosen_at.namespace) != (at.kind, at.namespace)

    def useless(self) -> Iterator[tuple[FieldPath, str]]:
        """The entries that are no fallback for any agent: field and name of the provider."""
        for at, entries in self._lists.items():
            shared = at.kind == InvestigationDefaults.KIND
            if shared and any(seen.other or seen.chosen_elsewhere for seen in entries.values()):
                continue
            for index, seen in entries.items():
                if not seen.other:
                    yield at[index] / "llmProvider", seen.name
