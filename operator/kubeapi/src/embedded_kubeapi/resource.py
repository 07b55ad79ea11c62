"""Describes one served kind in one version; all versions of a kind share one storage `key`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from embedded_kubeapi.objects import Key, Obj
from embedded_kubeapi.schema.builtin import BuiltinSchema
from embedded_kubeapi.schema.model import Schema
from embedded_kubeapi.shape import SchemaShape, Shape, builtin_shape

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of kubectl's tables: a JSONPath, or a function if a path cannot express it; `type` as in a CRD."""

    name: str
    path: str | Callable[[Obj], Any]
    type: str = "string"
    description: str = ""
    priority: int = 0
    format: str = ""


@dataclass(frozen=True, slots=True)
class Conversion:
    """The conversion of a kind that is stored in the form of another group."""

    group: str
    shown: Callable[[Obj], Obj]
    stored: Callable[[Obj], Obj]


@dataclass(frozen=True)
class Resource:
    """A kind of a group and version.

    Args:
        schema: what an object may be; None for the few built-in kinds of which only metadata is known.
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
    schema: Schema | BuiltinSchema | None = None
    selectable: tuple[str, ...] = ()
    stored: bool = True
    custom: bool = False
    deprecated: str = ""
    generations: bool = False
    conversion: Conversion | None = None

    @cached_property
    def api_version(self) -> str:
        """Such as `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def key(self) -> Key:
        """The storage key of its objects."""
        return self.conversion.group if self.conversion else self.group, self.plural

    @cached_property
    def shape(self) -> Shape:
        """The merge rules of its fields."""
        if isinstance(self.schema, Schema):
            return SchemaShape(self.schema.document, root=True)
        return builtin_shape(self.schema.model if self.schema else None)

    def shown(self, obj: Obj) -> Obj:
        """Converts a stored object to this version."""
        if obj["apiVersion"] == self.api_version:
            return obj
        return self.conversion.shown(obj) if self.conversion else {**obj, "apiVersion": self.api_version}

    def stored_form(self, obj: Obj) -> Obj:
        """Converts an object of this version to its stored form; both share the metadata."""
        return self.conversion.stored(obj) if self.conversion else obj

    @property
    def has_status(self) -> bool:
        """Whether status is a subresource."""
        return "status" in self.subresources
