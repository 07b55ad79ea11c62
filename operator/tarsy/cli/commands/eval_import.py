"""Declares `tarsy eval import`, which turns cases of public benchmarks into a suite."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def import_suite(
    form: Annotated[
        Literal["cloud-opsbench", "opensre", "holmesgpt", "runlore", "itbench"],
        typer.Argument(metavar="FORMAT", help="cloud-opsbench, opensre, holmesgpt, runlore or itbench."),
    ],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with the cases of the benchmark.")],
    out: Annotated[Path, typer.Option(help="Folder of the suite to write. It must be empty or missing.")],
    server: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="MCPServer that the tools belong to. Default: the name of the format."),
    ] = None,
) -> None:
    """Turn the cases of a public benchmark into a suite for tarsy eval run.

    Exit status: 0 all cases were written, 1 some were left out, with a reason for each.
    """
    from tarsy.cli.evals.importing import import_cases

    raise typer.Exit(import_cases(form, folder, out, server))
