"""Keeps the objects that a revision was resolved from, and restores them.

Decision: a revision keeps objects and no resolved plan, because a run adds parts of its own to a plan: the tools that
its alert brings, the defaults of its namespace, and what the current objects still allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from tarsy.plan.catalog import Catalog
from tarsy.plan.model import Plan
from tarsy.plan.select import search_path
from tarsy.resources.meta import API_VERSION, AnyResource
from tarsy.resources.parse import InvalidResource, parse_object
from tarsy.resources.v1alpha1 import KINDS
from tarsy.resources.v1alpha1.chain import Chain


class SnapshotUnreadable(Exception):
    """Raised for a stored snapshot that this version cannot read."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The objects of a revision."""

    chain: Chain
    objects: Mapping[tuple[str, str, str], AnyResource]
    """The other objects, by kind, namespace and name."""
    places: tuple[str, ...]
    """Namespaces whose InvestigationDefaults the revision was resolved with, present or absent."""

    @classmethod
    def of(cls, chain: Chain, plan: Plan, catalog: Catalog, library_namespace: str | None) -> Snapshot:
        """Takes the objects that a template was resolved from.

        Args:
            chain: the Chain.
            plan: its template.
            catalog: the objects.
            library_namespace: where shared objects are, or None.
        """
        objects: dict[tuple[str, str, str], AnyResource] = {}
        for ref in plan.objects:
            found = catalog.get(KINDS[ref.kind], ref.namespace, ref.name) if ref.kind != Chain.KIND else None
            if found is not None:
                objects[ref.kind, ref.namespace, ref.name] = found
        return cls(chain, objects, search_path(chain.metadata.namespace, library_namespace))

    def dump(self) -> str:
        """Returns the JSON that is stored: of each object its name, uid, generation and spec."""
        documents = [_document(obj) for obj in (self.chain, *(self.objects[key] for key in sorted(self.objects)))]
        return orjson.dumps({"objects": documents, "places": self.places}).decode()

    @classmethod
    def load(cls, text: str) -> Snapshot:
        """Reads a stored snapshot.

        Raises:
            SnapshotUnreadable: this version cannot; the message names the object.
        """
        try:
            document = orjson.loads(text)
            chain, *others = [parse_object(one) for one in document["objects"]]
            places = tuple(str(place) for place in document["places"])
        except InvalidResource as error:
            raise SnapshotUnreadable(str(error)) from error
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            raise SnapshotUnreadable("it is not a snapshot of a revision") from error
        if not isinstance(chain, Chain):
            raise SnapshotUnreadable("its first object is no Chain")
        return cls(chain, {(one.KIND, one.metadata.namespace, one.metadata.name): one for one in others}, places)


def _document(obj: AnyResource) -> dict[str, object]:
    meta = obj.metadata
    return {
        "apiVersion": API_VERSION,
        "kind": obj.KIND,
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid, "generation": meta.generation},
        "spec": obj.spec.model_dump(mode="json", by_alias=True, exclude_unset=True),
    }
