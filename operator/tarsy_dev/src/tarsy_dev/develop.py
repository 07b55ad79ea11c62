"""Implements `tarsy dev`: runs everything on this machine until Ctrl-C."""

import asyncio
import os
import shutil
import signal
import sys
from importlib.resources import files
from pathlib import Path

from rich.console import Console

from tarsy.cli.console import new_console
from tarsy_dev.errors import DevelopmentError
from tarsy_dev.model import Script, scenario_script
from tarsy_dev.operator_process import OperatorProcess
from tarsy_dev.sample import ALERTS, SHOP, Scenario, let_agents_read, put_before, put_scenario
from tarsy_dev.serving import until_serving
from tarsy_dev.sign_in_link import SignInLink, make_link
from tarsy_dev.stack import ApiChoice, RealModel, Stack, running_stack

STARTING = "Starting a Kubernetes API, Postgres and the operator …"


def configured_model(model: str | None, base_url: str | None) -> RealModel | None:
    """Returns the configured real model, or None without a key and without the URL of a server that needs none.

    Args:
        model: name of the model; None for the default one.
        base_url: URL of an OpenAI-compatible server; None for OpenAI.

    Raises:
        DevelopmentError: TARSY_MODEL_TIMEOUT is not a number of seconds.
    """
    key = os.environ.get("TARSY_MODEL_API_KEY") or os.environ.get("OPENAI_API_KEY") or ""
    if not key and not base_url:
        return None
    return RealModel(model=model or "gpt-5.2", base_url=base_url, api_key=key, seconds=_timeout())


def _timeout() -> int | None:
    """Returns the time limit of a model call in seconds, or None if it is not set."""
    said = os.environ.get("TARSY_MODEL_TIMEOUT", "").strip()
    if not said:
        return None
    if not said.isascii() or not said.isdigit() or not 1 <= int(said) <= 86_400:
        raise DevelopmentError(f"TARSY_MODEL_TIMEOUT is {said!r}; set it to seconds from 1 to 86400, or leave it out")
    return int(said)


async def prepare(stack: Stack, model: RealModel | Script | None, scenario: Scenario = "crash-loop") -> str:
    """Installs everything and the sample namespace into a started stack, and returns a sentence that names the model.

    An existing sample namespace of a kept folder stays as it is.

    Args:
        stack: started.
        model: None: the script of the scenario.
        scenario: what is put into the sample namespace.
    """
    new = await stack.client.find("Namespace", None, SHOP) is None
    if new:
        await put_before(stack.client)
    await stack.install()
    which = await stack.use_model(model or scenario_script(scenario))
    if new:
        await let_agents_read(stack.client, SHOP)
        await put_scenario(stack.client, scenario)
    return which


async def develop(keep: Path | None, model: str | None, base_url: str | None, api: ApiChoice) -> int:
    """Runs the stack and an operator until SIGINT or SIGTERM.

    Args:
        keep: folder for objects and record; None deletes them at the end.
        model: name of a real model.
        base_url: URL of an OpenAI-compatible server.
        api: which Kubernetes API to use.
    """
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    console = new_console(markup=False)
    console.print(STARTING)
    async with running_stack(keep, api=api) as stack:
        which = await prepare(stack, configured_model(model, base_url))
        link = await make_link(stack)
        operator = stack.operator(**link.environment)
        operator.on_restart = lambda status: console.print(f"The operator ended with status {status}; restarting it.")
        keeper, serving = asyncio.create_task(operator.keep_running()), asyncio.create_task(until_serving(stack))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                await serving
                _announce(console, stack, operator, link, which)
                await stopping
        finally:
            tasks = [keeper, serving, stopping]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await operator.stop()
    return 0


def _announce(console: Console, stack: Stack, operator: OperatorProcess, link: SignInLink, which: str) -> None:
    """Prints what runs, and the first commands to copy and paste."""

    def line(text: str = "") -> None:
        console.print(text, soft_wrap=True)

    console.print(f"{stack.api_sentence}; {which}.")
    line(f"Kubernetes API: {stack.api.url} (your user name there: {stack.person})")
    line(f"HTTP API: {stack.http_url}/api/v1 (bearer tokens)")
    line(f"Operator: pid {operator.pid}, log {stack.operator_log}")
    line(f"\n    export KUBECONFIG={stack.person_kubeconfig}")
    line(f"    export TARSY_DATABASE_URL='{stack.database_url}'\n")
    console.print(f"The Deployment checkout in namespace {SHOP} is crash-looping. Submit its alert, and watch:\n")
    alert = Path(str(files("tarsy").joinpath("manifests", ALERTS["crash-loop"]))).resolve()
    if stack.kubectl is None:
        program = shutil.which("tarsy") or Path(sys.executable).with_name("tarsy")
        line(f"    {program} alerts submit -f {alert} -n {SHOP} --wait\n")
        console.print("(kubectl is not on the PATH. `kubectl get inv -n shop -w` would show the same objects.)\n")
    else:
        line(f"    kubectl apply -n {SHOP} -f {alert}\n    kubectl get inv -n {SHOP} -w\n")
    line(f"{link.sentence()}\n\nCtrl-C stops everything.")
