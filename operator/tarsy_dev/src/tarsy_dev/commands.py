"""Implements `tarsy dev`, `tarsy demo` and `tarsy bench`, which `tarsy` finds through entry points."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from tarsy.cli.running import go

Keep = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Keep the objects and the record in this folder. Default: delete them at the end."
    ),
]
_Model = Annotated[
    str | None, typer.Option(envvar="TARSY_MODEL", help="Name of a real model. Default: a script plays the model.")
]
Api = Annotated[
    Literal["auto", "real", "embedded"],
    typer.Option(
        help="Kubernetes API: a real kube-apiserver, the embedded one, or a real one if its binaries exist (auto)."
    ),
]
BaseUrl = Annotated[
    str | None, typer.Option(envvar="TARSY_MODEL_BASE_URL", help="Base URL of an OpenAI-compatible server.")
]


def dev(keep: Keep = None, model: _Model = None, model_base_url: BaseUrl = None, api: Api = "auto") -> None:
    """Run TARSy and everything it needs on this machine until Ctrl-C; without --keep, delete all data then."""
    from tarsy_dev.develop import develop

    go(develop(keep, model, model_base_url, api))


def demo(
    keep: Keep = None,
    model: _Model = None,
    model_base_url: BaseUrl = None,
    api: Api = "auto",
    scenario: Annotated[
        Literal["crash-loop", "no-fault", "alertmanager"],
        typer.Option(
            help="What to investigate: a Deployment whose pods crash, one that is well, or a metric on which a rule of "
            "a real Prometheus fires, by way of a real Alertmanager."
        ),
    ] = "crash-loop",
) -> None:
    """Investigate a Deployment on this machine; exits 0 if the investigation succeeded."""
    if scenario == "alertmanager":
        from tarsy_dev.demo_alertmanager import demonstrate_alertmanager

        go(demonstrate_alertmanager(keep, model, model_base_url, api))
        return
    from tarsy_dev.demo import demonstrate

    go(demonstrate(keep, model, model_base_url, api, scenario))


bench = typer.Typer(no_args_is_help=True, help="Measure TARSy on recorded incidents.")


@bench.callback()
def _bench() -> None:
    """Measure TARSy on recorded incidents."""


@bench.command("cloud-opsbench")
def cloud_opsbench(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A checkout of Cloud-OpsBench, or a part of it.")],
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of cases. Default: all.")] = None,
) -> None:
    """Count how often the rules alone find the fault of a recorded incident; no model is called."""
    from tarsy_dev.opsbench.score import measure_rules

    raise typer.Exit(measure_rules(folder, limit))
