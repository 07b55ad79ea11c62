"""Declares `tarsy plan`, `tarsy ask` and `tarsy crds`, for authors of the configuration."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from tarsy.cli.commands.options import Context, Kubeconfig, LibraryNamespace
from tarsy.cli.running import go
from tarsy.plan.library import LIBRARY_NAMESPACE


def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    provider: Annotated[str | None, typer.Option(help="Name of an LLMProvider in the cluster.")] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            help="File with an LLMProvider, to use without a cluster. Its API key is read from TARSY_MODEL_API_KEY.",
        ),
    ] = None,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the LLMProvider.")] = "default",
    timeout: Annotated[
        float | None,
        typer.Option(
            min=1,
            envvar="TARSY_ASK_TIMEOUT",
            help="Maximum seconds until the answer is complete. Default: spec.timeouts of the LLMProvider.",
        ),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Ask a model one question, to test its LLMProvider. The answer is streamed."""
    from tarsy.cli.objects.ask import ask_cluster, ask_file

    if (provider is None) == (file is None):
        raise typer.BadParameter("give either --provider or --file")
    if file is not None:
        go(ask_file(question, file, provider_namespace=namespace, seconds=timeout))
    else:
        go(ask_cluster(question, provider or "", namespace, kubeconfig, context, seconds=timeout))


def plan(
    files: Annotated[
        list[Path], typer.Option("--file", "-f", help="File or directory with the configuration. May be repeated.")
    ],
    alert: Annotated[
        Path | None,
        typer.Option(help="File with the Alert or Investigation to plan for. Default: every chain is planned."),
    ] = None,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace of objects without one.")] = "default",
    library_namespace: LibraryNamespace = LIBRARY_NAMESPACE,
    output: Annotated[
        Literal["text", "yaml", "json"],
        typer.Option("--output", "-o", help="Output format: text for a terminal, yaml or json for programs."),
    ] = "text",
) -> None:
    """Print the plan of an investigation and all errors of the configuration, from files and without a cluster.

    Without --alert the whole configuration is checked: every chain is planned for each of its alert types.
    """
    from tarsy.cli.plans.plan import show_plan

    status = show_plan(files, alert, namespace=namespace, library_namespace=library_namespace, output=output)
    raise typer.Exit(status)


def crds(
    out: Annotated[
        Path | None, typer.Option(help="Directory to write the files to. Default: one YAML stream on standard output.")
    ] = None,
) -> None:
    """Print the CustomResourceDefinitions of this version."""
    from tarsy.resources.crd import files, write_crds

    if out is not None:
        write_crds(out)
        return
    for name, text in files().items():
        if name != "kustomization.yaml":
            sys.stdout.write("---\n" + text.removeprefix("---\n"))
