"""Defines the startup settings of the server."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """Holds the settings: the label with the namespace, and the metrics that every namespace may read.

    Attributes:
        namespace_label: `namespace`; where a scrape renames labels of its targets, `exported_namespace`.
        shared: matches the whole name of metrics that are about no namespace, such as those of nodes; None: none.
    """

    namespace_label: str = "namespace"
    shared: re.Pattern[str] | None = None

    @staticmethod
    def of(namespace_label: str, shared: str | None) -> "ToolSettings":
        """Returns checked settings. Raises ValueError: no label, or no regular expression."""
        if not (namespace_label.isascii() and namespace_label.isidentifier()):
            raise ValueError(f"--namespace-label {namespace_label!r} is not the name of a label")
        try:
            return ToolSettings(namespace_label, re.compile(shared) if shared else None)
        except re.error as error:
            raise ValueError(f"--shared-metrics {shared!r} is not a regular expression: {error}") from error
