"""Generates the reference of the configuration file from the topics that the processes read."""

from collections.abc import Iterator
from typing import Any, Final, get_args, get_origin

import annotated_types
from hack.site.text import code, line, page, table
from pydantic.fields import FieldInfo

from tarsy.app.settings.file import CONFIGURATION_KIND, CONFIGURATION_VERSION
from tarsy.app.settings.processes import (
    TOPICS,
    GatewayProcessSettings,
    OperatorSettings,
    WorkerProcessSettings,
    topics_of,
)
from tarsy.app.settings.topic import SettingsTopic, flag_of

_PROCESSES: Final = {
    "tarsy run": OperatorSettings,
    "tarsy worker": WorkerProcessSettings,
    "tarsy mcp-gateway": GatewayProcessSettings,
}
_TEXT: Final = f"""`--config FILE` of `tarsy run`, `tarsy worker` and `tarsy mcp-gateway` reads a file like this one:

```yaml
apiVersion: {CONFIGURATION_VERSION}
kind: {CONFIGURATION_KIND}
spec:
  execution:
    maxConcurrent: 20
  controller:
    retention: 30d
```

An option on the command line takes precedence over its environment variable, that over the file, and the file over the
default. The processes may share a file: each uses its own topics and checks all of them. A wrong file ends the
process with all its errors, each with its field and remedy. A file has no passwords: they stay in the environment.
The shipped manifests mount the ConfigMap `tarsy-config`; a process reads its file when it starts, so restart it after a
change: `kubectl -n tarsy-system rollout restart deployment/tarsy-operator`."""


def pages() -> dict[str, str]:
    """The page, by its path below docs/."""
    return {"reference/configuration.md": page(["# Configuration", _TEXT, *_topics()])}


def _topics() -> Iterator[str]:
    for name, topic in TOPICS.items():
        used = [command for command, process in _PROCESSES.items() if _has(topic, process)]
        yield f"## spec.{name}"
        yield f"{topic.__doc__ or ''} Used by {', '.join(map(code, used))}."
        yield table(("field", "value", "default", "option", "environment", "what it is"), _rows(topic))


def _has(topic: type[SettingsTopic], process: type) -> bool:
    """Returns whether a process has a topic, or one that refines it."""
    return any(issubclass(one, topic) for one in topics_of(process).values())


def _rows(topic: type[SettingsTopic]) -> Iterator[tuple[str, ...]]:
    for field in topic.model_fields.values():
        flag = flag_of(field)
        if flag is None or flag.hidden:
            continue
        yield (
            code(field.alias),
            _value(field),
            _default(field),
            ", ".join(code(name) for name in (flag.name, flag.short) if name),
            code(flag.environment) if flag.environment else "",
            line(field.description or ""),
        )


def _value(field: FieldInfo) -> str:
    text = str(field.annotation)
    if get_origin(field.annotation) is not None and "Literal" in text:
        return ", ".join(map(code, get_args(field.annotation)))
    if "tuple" in text:
        return "list of text"
    names = {"bool": "true or false", "int": "whole number", "float": "number", "Path": "path"}
    name = next((shown for word, shown in names.items() if word in text), "text")
    bounds: dict[str, Any] = {}
    for item in field.metadata:
        if isinstance(item, annotated_types.Ge):
            bounds["least"] = item.ge
        elif isinstance(item, annotated_types.Le):
            bounds["most"] = item.le
        elif isinstance(item, annotated_types.Gt):
            bounds["above"] = item.gt
    if "above" in bounds:
        return f"{name}, more than {bounds['above']}" + (f", at most {bounds['most']}" if "most" in bounds else "")
    if "most" in bounds:
        return f"{name}, {bounds['least']} to {bounds['most']}"
    return f"{name}, at least {bounds['least']}" if bounds else name


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default in (None, ()):
        return ""
    value = field.default
    return code(int(value) if isinstance(value, float) and value.is_integer() else value)
