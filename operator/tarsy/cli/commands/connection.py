"""Adds the options of a connection to the API to a command: namespace, kubeconfig, or server and token."""

import inspect
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tarsy.cli.running import go

if TYPE_CHECKING:
    from tarsy.client.aggregated import AggregatedClient
    from tarsy.client.direct import DirectClient
    from tarsy.client.opening import ConnectionOptions

    AnyClient = AggregatedClient | DirectClient

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_PREFIX = re.compile(r"(inv|investigations?(\.tarsy\.dev)?|tapp|toolapprovals?(\.tarsy\.dev)?)/")


def object_name(value: str | None) -> str | None:
    """Returns the name of an object, without the kind before it; checks an option or argument."""
    if value is None:
        return None
    name = _PREFIX.sub("", value, count=1)
    if not _NAME.fullmatch(name):
        raise typer.BadParameter("a name has lower case letters, digits, '-' and '.' only")
    return name


_OPTIONS: dict[str, Any] = {
    "namespace": Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            help="Namespace of the investigation. Default: the namespace of the kubeconfig's context.",
            callback=object_name,
        ),
    ],
    "context": Annotated[str | None, typer.Option(help="Context of the kubeconfig. Default: its current context.")],
    "kubeconfig": Annotated[
        str | None, typer.Option(help="Kubeconfig file. Default: KUBECONFIG, else ~/.kube/config.")
    ],
    "server": Annotated[
        str | None,
        typer.Option(
            envvar="TARSY_SERVER", metavar="URL", help="URL of TARSy's HTTP API, to use instead of the Kubernetes API."
        ),
    ],
    "token_file": Annotated[
        Path | None,
        typer.Option(
            envvar="TARSY_TOKEN_FILE",
            metavar="FILE",
            help="File with the bearer token for --server. Default: TARSY_TOKEN, else the token of the kubeconfig.",
        ),
    ],
    "certificate_authority": Annotated[
        str | None,
        typer.Option(
            "--certificate-authority",
            metavar="FILE",
            help="File with the CA certificates that verify the certificate of --server.",
        ),
    ],
}


def with_connection(function: Callable[..., None]) -> Callable[..., None]:
    """Makes a command of a function whose first argument is the connection that its options describe."""

    def command(**values: Any) -> None:
        from tarsy.client.opening import ConnectionOptions

        function(ConnectionOptions(**{name: values.pop(name) for name in _OPTIONS}), **values)

    kind = inspect.Parameter.KEYWORD_ONLY
    own = list(inspect.signature(function, eval_str=False).parameters.values())[1:]
    options = [inspect.Parameter(name, kind, default=None, annotation=note) for name, note in _OPTIONS.items()]
    parameters = [*(one.replace(kind=kind) for one in own), *options]
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def run_with_client(connection: "ConnectionOptions", work: "Callable[[AnyClient], Coroutine[Any, Any, int]]") -> None:
    """Opens the connection and runs the work of a command to its exit status."""
    from tarsy.client.opening import open_client

    async def through() -> int:
        async with open_client(connection) as client:
            return await work(client)

    go(through())
