"""Declares `tarsy eval run`, which measures chains without a cluster."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from tarsy.cli.commands.options import LibraryNamespace, span
from tarsy.cli.running import go
from tarsy.plan.library import LIBRARY_NAMESPACE

_WRONG_INPUT, _INTERNAL_ERROR = 3, 4


class MeasuringCommand(TyperCommand):
    """Ends with status 3 where its options are wrong and with 4 at an error in TARSy, because 1 and 2 are verdicts."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parses the options."""
        with _statuses():
            return super().make_context(*args, **kwargs)

    def invoke(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the command."""
        with _statuses():
            return super().invoke(*args, **kwargs)


@contextmanager
def _statuses() -> Iterator[None]:
    try:
        yield
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except Exception as error:
        if getattr(error, "exit_code", None) is None:
            traceback.print_exc()
            raise typer.Exit(_INTERNAL_ERROR) from None
        vars(error)["exit_code"] = _WRONG_INPUT
        raise


Samples = Annotated[
    int | None, typer.Option(min=1, max=20, help="Number of runs of each case. Default: that of the suite, else 1.")
]
Parallel = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=50,
        help="Maximum concurrent samples. Default: that of the suite, else 4. limits.maxConcurrent of an LLMProvider "
        "lowers it.",
    ),
]
BudgetTokens = Annotated[
    int | None, typer.Option(min=1, help="Tokens of all samples. When it is reached, no further sample is started.")
]
BudgetUsd = Annotated[
    float | None,
    typer.Option(min=0.0001, help="Cost of all samples in US dollars. Needs rates on every LLMProvider."),
]
ApiKeys = Annotated[
    list[str] | None,
    typer.Option(
        "--api-key",
        metavar="SECRET=VARIABLE",
        help="Environment variable with the API key of a Secret. May be repeated. Default: TARSY_MODEL_API_KEY, if all "
        "LLMProviders name the same Secret.",
    ),
]
Outputs = Annotated[
    list[str] | None,
    typer.Option(
        "--out",
        metavar="FORMAT[=FILE]",
        help="Write the result as json (a baseline for later runs) or junit, to a file or standard output. May be "
        "repeated. Default: a table only.",
    ),
]


def run(
    files: Annotated[
        list[Path], typer.Option("--file", "-f", help="File or directory with the configuration. May be repeated.")
    ],
    suite: Annotated[Path, typer.Option(help="Folder with the cases: cassettes and their expectations.")],
    baseline: Annotated[
        Path | None, typer.Option(help="Result of an earlier run (--out json) to compare with.")
    ] = None,
    out: Outputs = None,
    chain: Annotated[
        str | None, typer.Option(help="Name of the Chain to measure. Default: the one of each case's alert type.")
    ] = None,
    samples: Samples = None,
    parallel: Parallel = None,
    budget_tokens: BudgetTokens = None,
    budget_usd: BudgetUsd = None,
    api_key: ApiKeys = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace of the runs, and of objects without one.")
    ] = "default",
    library_namespace: LibraryNamespace = LIBRARY_NAMESPACE,
) -> None:
    """Measure a suite of recorded incidents on this machine, with the real models and without a cluster.

    Exit status: 0 the suite passed, 1 it regressed, 2 it is insufficient, 3 an input is wrong, 4 an error in TARSy.
    """
    from tarsy.cli.evals.plans import Configuration
    from tarsy.cli.evals.run import Output, Overrides, measure_folder

    go(
        measure_folder(
            Configuration(files, namespace, library_namespace, chain),
            suite,
            baseline=baseline,
            overrides=Overrides(samples, parallel, budget_tokens, budget_usd),
            outputs=[span(one, "--out", Output.parse) for one in out or ()],
            keys=keys_of(api_key or ()),
        )
    )


def keys_of(given: list[str] | tuple[str, ...]) -> dict[str, str]:
    """Returns the variable of each Secret.

    Args:
        given: values of --api-key.

    Raises:
        BadParameter: one is not SECRET=VARIABLE.
    """
    return dict(span(one, "--api-key", _key) for one in given)


def _key(text: str) -> tuple[str, str]:
    secret, _, variable = text.partition("=")
    if not (secret and variable):
        raise ValueError(f"{text!r} is not SECRET=VARIABLE")
    return secret, variable
