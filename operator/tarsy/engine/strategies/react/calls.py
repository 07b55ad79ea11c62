"""Splits the text of an Action: a name, or a call as programmers write it."""

import re
from dataclasses import dataclass

_CALL = re.compile(r"[ \t\"'`*]*(?P<name>[\w.:/-]+)[`*\"']*\s*+(?P<opening>[({])")
_LONGEST_LINE = 2000


@dataclass(frozen=True, slots=True)
class Call:
    """The tool an Action names, as written, and the arguments it brings itself: `k8s.get_pods(namespace="x")`."""

    name: str
    arguments: str | None = None


def read_call(content: str) -> Call:
    """Reads the content of an Action that is not blank."""
    found = _CALL.match(content)
    if found:
        if found["opening"] == "(" and (end := content.rfind(")")) > 0:
            inside = content[found.end() : end].strip()
            if not inside or inside[0] in "{[\"'" or re.match(r"\w+[ \t]*[=:]", inside):
                return Call(found["name"], inside)
        if found["opening"] == "{" and content.rstrip("`* \t\n").endswith("}"):
            return Call(found["name"], content[found.start("opening") :].rstrip("`* \t\n"))
    line = content.strip().partition("\n")[0][:_LONGEST_LINE]
    return Call(line.strip())
