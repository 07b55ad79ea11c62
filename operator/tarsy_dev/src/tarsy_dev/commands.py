"""Implements `tarsy dev`, `tarsy demo` and `tarsy bench`, which `tarsy` finds through entry points."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from tarsy.cli.commands.eval_run import ApiKeys, BudgetTokens, BudgetUsd, Outputs, keys_of
from tarsy.cli.commands.options import span
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
    Literal["auto", "real", "embedded", "newer"],
    typer.Option(
        help="Kubernetes API: a real kube-apiserver, the embedded one, the embedded one with Kubernetes 1.36's API "
        "extensions server behind it (newer; make kube-extensions), or a real one if its binaries exist (auto)."
    ),
]
BaseUrl = Annotated[
    str | None, typer.Option(envvar="TARSY_MODEL_BASE_URL", help="Base URL of an OpenAI-compatible server.")
]


def dev(keep: Keep = None, model: _Model = None, model_base_url: BaseUrl = None, api: Api = "auto") -> None:
    """Run TARSy and everything it needs on this machine until Ctrl-C; without --keep, all data is deleted at the
    end."""
    from tarsy_dev.develop import develop

    go(develop(keep, model, model_base_url, api))


def demo(
    keep: Keep = None,
    model: _Model = None,
    model_base_url: BaseUrl = None,
    api: Api = "auto",
    scenario: Annotated[
        Literal["crash-loop", "no-fault", "alertmanager", "remediation"],
        typer.Option(
            help="What to investigate: a Deployment whose pods crash, one that is well, or a metric on which a rule of "
            "a real Prometheus fires, through a real Alertmanager. remediation: as crash-loop, followed by a change "
            "that is proposed, approved and made."
        ),
    ] = "crash-loop",
    remedy: Annotated[
        Literal["key", "scale", "restart", "rollback", "all"],
        typer.Option(
            help="With --scenario remediation, the change: a key of a ConfigMap is restored, replicas are set, a "
            "Deployment is restarted or rolled back, or each of them, one after the other."
        ),
    ] = "key",
) -> None:
    """Investigate a Deployment on this machine; exits 0 if the investigation succeeded."""
    if scenario == "alertmanager":
        from tarsy_dev.demo_alertmanager import demonstrate_alertmanager

        go(demonstrate_alertmanager(keep, model, model_base_url, api))
        return
    if scenario == "remediation":
        from tarsy_dev.demo_remediation import demonstrate_remediation

        go(demonstrate_remediation(keep, model, model_base_url, api, remedy))
        return
    from tarsy_dev.demo import demonstrate

    go(demonstrate(keep, model, model_base_url, api, scenario))


bench = typer.Typer(no_args_is_help=True, help="Measure TARSy on recorded incidents.")


@bench.callback()
def _bench() -> None:
    """Measure TARSy on recorded incidents."""


@bench.command("cloud-opsbench")
def cloud_opsbench(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Checkout of Cloud-OpsBench, or a part of it.")],
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of cases. Default: all.")] = None,
) -> None:
    """Count how often the rules alone find the fault of a recorded incident; no model is called."""
    from tarsy_dev.opsbench.score import measure_rules

    raise typer.Exit(measure_rules(folder, limit))


@bench.command("incidents")
def incidents(
    provider: Annotated[Path, typer.Option(metavar="FILE", help="File with the LLMProvider to measure.")],
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="Folder with the incidents. Default: tests/incidents of the checkout.",
            show_default=False,
        ),
    ] = None,
    chain: Annotated[str, typer.Option(help="Name of the Chain of the library to measure.")] = "kubernetes",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of incidents, evenly spread by name. Default: all.")
    ] = None,
    parallel: Annotated[
        int,
        typer.Option(
            min=1, max=50, help="Maximum concurrent incidents; limits.maxConcurrent of the LLMProvider lowers it."
        ),
    ] = 4,
    budget_tokens: BudgetTokens = None,
    budget_usd: BudgetUsd = None,
    api_key: ApiKeys = None,
    out: Outputs = None,
) -> None:
    """Let a real model investigate recorded incidents on this machine, and compare it with the rules alone.

    Exit status: 0 measured, regardless of the result, 2 an input is wrong.
    """
    from tarsy.cli.evals.run import Output, Overrides
    from tarsy_dev.incidents.bench import Bench, bench_incidents
    from tarsy_dev.incidents.corpus import FOLDER

    go(
        bench_incidents(
            Bench(folder or FOLDER, provider, FOLDER.parents[1] / "manifests/library", chain, limit),
            Overrides(parallelism=parallel, tokens=budget_tokens, cost_usd=budget_usd),
            [span(one, "--out", Output.parse) for one in out or ()],
            keys_of(api_key or ()),
        )
    )
