"""Completes command lines, for the scripts of shells and for kubectl.

Decision: one hidden command (`__complete`) serves all shells and kubectl. It inspects the commands themselves, so a new
option needs no line here. Names of objects are read from the cluster within two seconds, or omitted.
"""

import asyncio
import contextlib
import os
from collections.abc import Sequence
from typing import Any, Literal, Protocol, cast, get_args, get_origin

from tarsy.client.errors import ApiUseError

Shell = Literal["bash", "zsh", "fish"]
NAMES_SECONDS = 2.0
ASK = "__complete"
_NAMED = ("timeline", "chat", "trace", "replay", "retry", "why", "cancel", "conclude", "review")
_WAITING = ("approve", "reject")
_ACCESS = {
    "--kubeconfig": "kubeconfig",
    "--context": "context",
    "--namespace": "namespace",
    "-n": "namespace",
    "--server": "server",
}
_SCRIPTS: dict[Shell, str] = {
    "bash": """\
_@FUNCTION@() {
    local IFS=$'\\n'
    COMPREPLY=($(@PROGRAM@ __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _@FUNCTION@ @PROGRAM@
""",
    "zsh": """\
#compdef @PROGRAM@
_@FUNCTION@() {
    local -a found
    found=("${(@f)$(@PROGRAM@ __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[*]}" ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _@FUNCTION@ @PROGRAM@
""",
    "fish": """\
function __@FUNCTION@
    set -l words (commandline -opc)
    @PROGRAM@ __complete $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c @PROGRAM@ -a '(__@FUNCTION@)'
""",
}


class _Parameter(Protocol):
    opts: list[str]
    secondary_opts: list[str]


class _Command(Protocol):
    params: list[_Parameter]


def script(shell: Shell, program: str) -> str:
    """Returns the completion script of a shell for `program`."""
    function = program.replace("-", "_") + "_completion"
    return _SCRIPTS[shell].replace("@FUNCTION@", function).replace("@PROGRAM@", program)


def candidates(root: object, words: Sequence[str]) -> list[str]:
    """Returns the completions of the last of `words`, which may be empty.

    Args:
        root: the root command.
        words: the command line without the program.
    """
    *before, last = words or [""]
    command, path, waiting = _walk(cast(_Command, root), before)
    if waiting is not None:
        found = _choices(waiting)
    elif last.startswith("-"):
        found = [option for parameter in command.params for option in _options(parameter)]
    elif commands := _commands(command):
        found = sorted(name for name, one in commands.items() if not getattr(one, "hidden", False))
    else:
        arguments = [parameter for parameter in command.params if not _options(parameter)]
        found = [choice for one in arguments for choice in _choices(one)]
        if path[:1] and path[0] in _NAMED and len(path) == 1:
            found = _names(before, "Investigation")
        elif path[:1] and path[0] in _WAITING and len(path) == 1:
            found = _names(before, "ToolApproval")
    return [one for one in found if one.startswith(last)]


def _walk(command: _Command, words: Sequence[str]) -> tuple[_Command, list[str], _Parameter | None]:
    """Returns the command of `words`, the words that are no options, and the option whose value is next."""
    path: list[str] = []
    waiting: _Parameter | None = None
    for word in words:
        if waiting is not None:
            waiting = None
        elif word.startswith("-"):
            waiting = None if "=" in word else _takes_value(command, word)
        else:
            path.append(word)
            command = cast(_Command, _commands(command).get(word, command))
    return command, path, waiting


def _commands(command: object) -> dict[str, Any]:
    return dict(getattr(command, "commands", None) or {})


def _options(parameter: _Parameter) -> list[str]:
    return [name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("-")]


def _choices(parameter: _Parameter) -> list[str]:
    """Returns the values of a parameter with a Literal annotation."""
    annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    parts = [annotation, *get_args(annotation)]
    return [str(value) for part in parts if get_origin(part) is Literal for value in get_args(part)]


def _takes_value(command: _Command, word: str) -> _Parameter | None:
    found = next((one for one in command.params if word in _options(one)), None)
    return None if found is None or getattr(found, "is_flag", False) else found


def _names(words: Sequence[str], kind: str) -> list[str]:
    """Returns the objects of the namespace that the words name; none if the API does not respond in time."""
    from tarsy.client.opening import ConnectionOptions, open_client
    from tarsy.kube.client import ApiError

    given: dict[str, str] = {}
    for word, value in zip(words, [*words[1:], ""], strict=True):
        option, equals, joined = word.partition("=")
        if option in _ACCESS:
            given[_ACCESS[option]] = joined if equals else value
    if not given.get("server"):
        given["server"] = os.environ.get("TARSY_SERVER", "")

    async def read() -> list[str]:
        async with asyncio.timeout(NAMES_SECONDS):
            options: dict[str, Any] = {key: value for key, value in given.items() if value}
            async with open_client(ConnectionOptions(**options)) as client:
                if kind == "ToolApproval":
                    return [one.name for one in await client.approvals(client.namespace, decided=False)]
                return await client.names(kind, client.namespace)

    with contextlib.suppress(ApiUseError, ApiError, TimeoutError):
        return sorted(asyncio.run(read()))
    return []
