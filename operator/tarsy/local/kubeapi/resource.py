"""One served kind in one version. Where it is stored is its `key`: all versions of a kind share one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tarsy.local.kubeapi.objects import Key, Obj
from tarsy.local.kubeapi.schema.model import Schema
from tarsy.local.kubeapi.shape import BuiltinShape, SchemaShape, Shape

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of kubectl's tables: a JSONPath, or a function where a path cannot say it; `type` as in a CRD."""

    name: str
    path: str | Callable[[Obj], Any]
    type: str = "string"
    description: str = ""
    priority: int = 0
    format: str = ""


@dataclass(frozen=True)
class Resource:
    """A kind of a group and version.

    Args:
        schema: what a custom resource may be; None for built-in kinds.
        selectable: field selectors beside metadata.name and metadata.namespace, such as `spec.nodeName`.
        stored: False for kinds that are only asked, never kept, such as SubjectAccessReview.
        deprecated: the warning that its use earns.
        generations: whether metadata.generation counts changes of the spec.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    verbs: tuple[str, ...] = ALL_VERBS
    columns: tuple[Column, ...] = ()
    schema: Schema | None = None
    selectable: tuple[str, ...] = ()
    stored: bool = True
    custom: bool = False
    deprecated: str = ""
    generations: bool = False

    @cached_property
    def api_version(self) -> str:
        """Such as `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def key(self) -> Key:
        """Where its objects are."""
        return self.group, self.plural

    @cached_property
    def qualified(self) -> str:
        """Such as `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def shape(self) -> Shape:
        """How its fields merge."""
        return SchemaShape(self.schema.document, root=True) if self.schema else BuiltinShape()

    @property
    def has_status(self) -> bool:
        """Whether status is written through its subresource only."""
        return "status" in self.subresources
