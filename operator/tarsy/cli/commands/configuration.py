"""`tarsy plan`, `tarsy ask` and `tarsy crds`: for those who write the configuration."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from tarsy.cli.commands.options import Context, Kubeconfig, LibraryNamespace
from tarsy.cli.running import go
from tarsy.plan.library import LIBRARY_NAMESPACE


def ask(
    question: Annotated[str, typer.Argument(help="What to ask.")],
    provider: Annotated[str | None, typer.Option(help="Name of an LLMProvider of the cluster.")] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="File with an LLMProvider, for no cluster; the key: TARSY_MODEL_API_KEY."),
    ] = None,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the LLMProvider.")] = "default",
    timeout: Annotated[
        float | None,
        typer.Option(
            min=1,
            envvar="TARSY_ASK_TIMEOUT",
            help="Longest answer in seconds, each wait in it included; spec.timeouts of the LLMProvider when not set.",
        ),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Ask a model one question, to try its LLMProvider; the answer is streamed."""
    from tarsy.cli.ask import ask_cluster, ask_file

    if (provider is None) == (file is None):
        raise typer.BadParameter("give either --provider or --file")
    if file is not None:
        go(ask_file(question, file, provider_namespace=namespace, seconds=timeout))
    else:
        go(ask_cluster(question, provider or "", namespace, kubeconfig, context, seconds=timeout))


def plan(
    files: Annotated[
        list[Path], typer.Option("--file", "-f", help="File or folder with the configuration; may be repeated.")
    ],
    alert: Annotated[
        Path | None,
        typer.Option(help="File with the Alert, or Investigation, to plan for; without, every chain is planned."),
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace of objects that name none.")
    ] = "default",
    library_namespace: LibraryNamespace = LIBRARY_NAMESPACE,
    output: Annotated[
        Literal["text", "yaml", "json"], typer.Option("--output", "-o", help="For people, or for programs.")
    ] = "text",
) -> None:
    """Print what an investigation would do, and everything that is wrong, out of files and without a cluster.

    Without --alert all configuration is checked: every chain is planned for each of its alert types.
    """
    from tarsy.cli.plan import show_plan

    status = show_plan(files, alert, namespace=namespace, library_namespace=library_namespace, output=output)
    raise typer.Exit(status)


def crds(
    out: Annotated[
        Path | None, typer.Option(help="Write the files there, instead of one stream to the output.")
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
