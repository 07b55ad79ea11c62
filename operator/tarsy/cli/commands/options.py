"""Declares options that several commands share; those of the long-running processes are in `settings`."""

from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

import typer

S = TypeVar("S")

Kubeconfig = Annotated[
    str | None,
    typer.Option(help="Kubeconfig file. Default: the pod's ServiceAccount, else KUBECONFIG or ~/.kube/config."),
]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig. Default: its current context.")]
DatabaseUrl = Annotated[
    str,
    typer.Option(
        envvar="TARSY_DATABASE_URL",
        metavar="URL",
        help="postgresql:// URL of the database; needs sslmode unless the database is on this machine.",
        show_envvar=True,
    ),
]
LibraryNamespace = Annotated[
    str,
    typer.Option(
        envvar="TARSY_LIBRARY_NAMESPACE",
        help="Namespace of the library: Chains and InvestigationDefaults that a namespace does not define itself are "
        "looked up there.",
    ),
]

TextOrJson = Annotated[
    Literal["text", "json"],
    typer.Option("--output", "-o", help="Output format: text for a terminal, json for programs."),
]


def span(text: str, option: str, read: Callable[[str], S]) -> S:
    """Parses the value of an option.

    Args:
        text: the value.
        option: the option's name, for the error.
        read: the parser; its ValueError says what is wrong.

    Raises:
        BadParameter: the value cannot be parsed.
    """
    try:
        return read(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
