"""Implements `tarsy dev` and `tarsy demo`, which `tarsy` finds through the entry points `tarsy.commands`."""

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
        Literal["crash-loop", "no-fault"],
        typer.Option(help="What to investigate: a Deployment whose pods crash, or one that is well."),
    ] = "crash-loop",
) -> None:
    """Investigate a Deployment on this machine; exits 0 if the investigation succeeded."""
    from tarsy_dev.demo import demonstrate

    go(demonstrate(keep, model, model_base_url, api, scenario))
