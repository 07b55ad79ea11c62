"""Defines the levels that a setting can be set at, and picks the one that counts.

Decision: a setting travels with the field it stands in, so the highest one that is set decides the value, the field
that an error names, and the namespace its name is looked up in: a configuration object's references resolve in its
own namespace. Lists of levels read from lowest to highest, as the fields override each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from tarsy.plan.errors import FieldPath
from tarsy.resources.v1alpha1.agent import Agent, AgentSpec
from tarsy.resources.v1alpha1.chain import ChainSpec, ChatSettings
from tarsy.resources.v1alpha1.common import McpSelection
from tarsy.resources.v1alpha1.investigation_defaults import InvestigationDefaultsSpec
from tarsy.resources.v1alpha1.stage import Stage, StageAgent

_T = TypeVar("_T")
Level = tuple[_T | None, FieldPath]


@dataclass(frozen=True, slots=True)
class Scope:
    """The levels that all agents of a run share: the chain and the defaults, with their fields.

    `path` is where the run's own references are looked up, in order; it begins with the run's namespace. `shared` are
    the defaults of the chain's namespace, which name providers where those of the run may not (`Providers`).
    """

    path: tuple[str, ...]
    chain: ChainSpec
    at_chain: FieldPath
    defaults: InvestigationDefaultsSpec
    at_defaults: FieldPath
    shared: InvestigationDefaultsSpec = field(default_factory=InvestigationDefaultsSpec)

    @property
    def namespace(self) -> str:
        """The run's namespace."""
        return self.path[0]

    @property
    def home(self) -> str:
        """The chain's namespace, where it looks up what it names."""
        return self.at_chain.namespace


@dataclass(frozen=True, slots=True)
class AgentLevels:
    """The levels that configure one agent: the defaults, its Agent, the chain, then the blocks of the chain.

    Args:
        scope: The chain and the defaults.
        agent: The Agent object, or None where there is none.
        at_agent: The spec of the Agent, or the field that would name it.
        blocks: From lowest to highest: the stage and its entry for the agent, or the chat block.
    """

    scope: Scope
    agent: Agent | None
    at_agent: FieldPath
    blocks: tuple[tuple[Stage | StageAgent | ChatSettings, FieldPath], ...]

    @property
    def spec(self) -> AgentSpec:
        """The Agent's spec, empty where there is no Agent."""
        return AgentSpec() if self.agent is None else self.agent.spec

    def strategy(self) -> tuple[str, FieldPath] | None:
        """The strategy that is set, with its field; a stage sets none."""
        scope = self.scope
        return last_set(
            (scope.defaults.strategy, scope.at_defaults / "strategy"),
            (self.spec.strategy, self.at_agent / "strategy"),
            (scope.chain.strategy, scope.at_chain / "strategy"),
            *((block.strategy, at / "strategy") for block, at in self.blocks if not isinstance(block, Stage)),
        )

    def iterations(self) -> tuple[int, FieldPath] | None:
        """The maximum of iterations that is set, with its field."""
        scope = self.scope
        return last_set(
            (scope.defaults.max_iterations, scope.at_defaults / "maxIterations"),
            (self.spec.max_iterations, self.at_agent / "maxIterations"),
            (scope.chain.max_iterations, scope.at_chain / "maxIterations"),
            *((block.max_iterations, at / "maxIterations") for block, at in self.blocks),
        )

    def servers(self) -> tuple[Level[tuple[McpSelection, ...]], ...]:
        """The levels of tool servers; the first is the Agent's own."""
        scope = self.scope
        return (
            (self.spec.mcp_servers, self.at_agent / "mcpServers"),
            (scope.chain.mcp_servers, scope.at_chain / "mcpServers"),
            *((block.mcp_servers, at / "mcpServers") for block, at in self.blocks),
        )


def last_set(*levels: Level[_T]) -> tuple[_T, FieldPath] | None:
    """The highest level that is set, with its field; an empty list is set."""
    return next(((value, at) for value, at in reversed(levels) if value is not None), None)


def last_filled(*levels: Level[tuple[_T, ...]]) -> tuple[tuple[_T, ...], FieldPath] | None:
    """The highest level that has something in its list: an empty list is as good as none."""
    return last_set(*((value or None, at) for value, at in levels))
