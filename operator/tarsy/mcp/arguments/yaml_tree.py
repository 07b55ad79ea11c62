"""Reads nested YAML as a tree of text, so that neither dates nor `12:30:45` nor `no` turn into something else."""

import re
from collections.abc import Callable
from typing import Any

import yaml

from tarsy.mcp.arguments.scalars import coerce

_LIMIT = 16 * 1024
"""Characters of the longest text that is read as YAML."""
_COMPLEX = re.compile(r"\n[ \t]*-|\n  [^\n]*:|: [\[{]")


class _Composer(yaml.SafeLoader):
    """Composes a tree without aliases: they would make the result exponentially larger than the text."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


def read_yaml(text: str, scalar: Callable[[str], Any] = coerce) -> dict[str, Any] | None:
    """Reads text that looks like nested YAML.

    Args:
        text: What the model wrote.
        scalar: Turns a scalar without quotes into its value.

    Returns:
        The mapping; None when the text is something else.
    """
    if len(text) > _LIMIT or not _COMPLEX.search(text):
        return None
    try:
        value = _plain(yaml.compose(text, Loader=_Composer), scalar)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _plain(node: yaml.Node | None, scalar: Callable[[str], Any]) -> Any:
    if isinstance(node, yaml.MappingNode):
        if not all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
            raise ValueError("a key is not text")
        return {key.value: _plain(value, scalar) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, scalar) for item in node.value]
    if isinstance(node, yaml.ScalarNode):
        return node.value if node.style else scalar(node.value)
    return None
