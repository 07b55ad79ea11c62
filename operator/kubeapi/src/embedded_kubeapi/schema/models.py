"""Reads the fields of the built-in kinds from the source of the installed `kubernetes` package.

That package is generated from Kubernetes' own OpenAPI: names, types and descriptions are right for every kind, and none
of it has to be kept up here. The models are read and not imported: to import those of a Pod takes most of a second
(134 pydantic classes), to read the few that an object touches takes about a millisecond. What the package does not say
(how lists merge, which texts are quantities, what is hidden behind `object`) is the tables below.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

Kind = Literal["string", "integer", "number", "boolean", "time", "bytes", "quantity", "int-or-string", "any", "list",
               "map", "model"]  # fmt: skip
META = "V1ObjectMeta"

_SCALARS: dict[str, Kind] = {"str": "string", "int": "integer", "float": "number", "bool": "boolean",
                             "datetime": "time", "bytes": "bytes", "object": "any"}  # fmt: skip
_INT_OR_STRING = frozenset(("port", "targetPort", "maxUnavailable", "minAvailable", "maxSurge"))
_QUANTITY_MAPS = frozenset(("limits", "requests", "capacity", "hard", "used", "allocatable", "default",
                            "defaultRequest", "max", "min", "maxLimitRequestRatio", "overhead",
                            "allocatedResources"))  # fmt: skip
_QUANTITIES = frozenset(("sizeLimit", "divisor", "averageValue", "minimumCapacity", "maximumVolumeSize"))
_HIDDEN = {("V1JSONSchemaProps", "items"): "V1JSONSchemaProps",
           ("V1JSONSchemaProps", "additionalProperties"): "V1JSONSchemaProps",
           ("V2MetricTarget", "value"): "quantity", ("V2MetricValueStatus", "value"): "quantity"}  # fmt: skip
# Kinds whose model is not named after the version and kind alone.
_NAMED = {("", "Event"): "CoreV1Event", ("events.k8s.io", "Event"): "EventsV1Event",
          ("authentication.k8s.io", "TokenRequest"): "AuthenticationV1TokenRequest"}  # fmt: skip

_EXPORT = re.compile(r"from kubernetes\.client\.models\.(\w+) import (\w+)")
_TYPES = re.compile(r"\n    openapi_types\b[^=]*= (\{.*?\n    \})", re.DOTALL)
_NAMES = re.compile(r"\n    attribute_map\b[^=]*= (\{.*?\n    \})", re.DOTALL)
_FIELD = re.compile(r"\n    (\w+): ([^\n]*?) = Field\(([^\n]*)\)(?=\n)")
_TEXT = re.compile(r"\bdescription=(\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')")
_ABOUT = re.compile(r'\nclass \w+\(BaseModel\):\n    """\n    (.*?)\n\n    Attributes:', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a field: `of` is the item type of a list or map, `model` the name of an object's model."""

    kind: Kind
    of: Type | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class Documentation:
    """The description of a model and, by field, its description and whether it is required."""

    about: str
    fields: dict[str, str]
    required: frozenset[str]


@dataclass(frozen=True)
class Model:
    """The fields of an object by their JSON names."""

    name: str
    fields: dict[str, Type]


def model_of(group: str, version: str, kind: str) -> str | None:
    """Returns the model of a `group`, `version` and `kind`; None if the package has none."""
    name = _NAMED.get((group, kind)) or f"{version[0].upper()}{version[1:]}{kind}"
    return name if name in _files() else None


@cache
def model(name: str) -> Model:
    """Returns the fields of a model.

    Raises:
        LookupError: the package has no such model, or writes its models in another way than is known here.
    """
    text = _source(name)
    types, names = _TYPES.search(text), _NAMES.search(text)
    if types is None or names is None:
        raise LookupError(f"the kubernetes package writes {name} in an unknown way: install the locked version")
    by_attribute, found = ast.literal_eval(names[1]), {}
    for attribute, written in ast.literal_eval(types[1]).items():
        field = by_attribute[attribute]
        found[field] = _type(name, field, written)
    return Model(name, found)


@cache
def documentation(name: str) -> Documentation:
    """Returns the package's description of a model and its fields."""
    text, attributes = _source(name), _NAMES.search(_source(name))
    by_attribute = ast.literal_eval(attributes[1]) if attributes else {}
    texts, required = {}, set()
    for attribute, annotation, arguments in _FIELD.findall(text):
        field = by_attribute.get(attribute, attribute)
        if described := _TEXT.search(arguments):
            texts[field] = ast.literal_eval(described[1])
        if not annotation.startswith("Optional[") and "default=" not in arguments:
            required.add(field)
    about = _ABOUT.search(text)
    return Documentation(" ".join(about[1].split()) if about else "", texts, frozenset(required))


def _type(owner: str, field: str, written: str) -> Type:
    written = _HIDDEN.get((owner, field), written)
    if written.startswith("List["):
        return Type("list", _type(owner, "", written[5:-1]))
    if written.startswith("Dict["):
        inside = written.partition(", ")[2][:-1]
        return Type("map", Type("quantity") if field in _QUANTITY_MAPS else _type(owner, "", inside))
    if written == "quantity" or (written == "str" and field in _QUANTITIES):
        return Type("quantity")
    if written == "object" and field in _INT_OR_STRING:
        return Type("int-or-string")
    return Type(_SCALARS[written]) if written in _SCALARS else Type("model", model=written)


@cache
def _folder() -> Path:
    spec = find_spec("kubernetes")
    if spec is None or not spec.submodule_search_locations:
        raise LookupError("the kubernetes package is not installed: the kinds' fields are read from it")
    return Path(spec.submodule_search_locations[0]) / "client" / "models"


@cache
def _files() -> dict[str, str]:
    return {name: file for file, name in _EXPORT.findall((_folder() / "__init__.py").read_text())}


def _source(name: str) -> str:
    file = _files().get(name)
    if file is None:
        raise LookupError(f"the kubernetes package has no model {name}")
    return (_folder() / f"{file}.py").read_text()
