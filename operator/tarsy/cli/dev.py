"""`tarsy dev`: everything on this machine until Ctrl-C."""

import asyncio
import os
import signal
from pathlib import Path

from rich.console import Console

from tarsy.cli.errors import CommandError
from tarsy.cli.page import is_open, make_link
from tarsy.local.model import Script
from tarsy.local.stack import ApiChoice, RealModel, Stack, running_stack


def configured_model(model: str | None, base_url: str | None) -> RealModel | None:
    """The real model that is configured, if one is: by key, or by the address of a server that asks for none.

    Raises:
        CommandError: TARSY_MODEL_TIMEOUT is no number of seconds.
    """
    key = os.environ.get("TARSY_MODEL_API_KEY") or os.environ.get("OPENAI_API_KEY") or ""
    if not key and not base_url:
        return None
    return RealModel(model=model or "gpt-5.2", base_url=base_url, api_key=key, seconds=_timeout())


def _timeout() -> int | None:
    """Seconds that a call of the configured model may take, where they are set."""
    said = os.environ.get("TARSY_MODEL_TIMEOUT", "").strip()
    if not said:
        return None
    if not said.isascii() or not said.isdigit() or not 1 <= int(said) <= 86_400:
        raise CommandError(f"TARSY_MODEL_TIMEOUT is {said!r}; set it to seconds from 1 to 86400, or leave it out")
    return int(said)


async def prepare(stack: Stack, model: RealModel | Script | None) -> str:
    """Installs everything into a started stack; a sentence that says which model answers."""
    await stack.install()
    return await stack.use_model(model)


async def develop(keep: Path | None, model: str | None, base_url: str | None, api: ApiChoice) -> int:
    """Runs the stack and an operator until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    console = Console()
    console.print("Starting a Kubernetes API, Postgres and the operator …")
    async with running_stack(keep, api=api) as stack:
        which = await prepare(stack, configured_model(model, base_url))
        link = await make_link(stack)
        operator = stack.operator(**link.environment)

        def restarted(status: int) -> None:
            console.print(f"The operator ended with status {status}; it is started again.")

        operator.on_restart = restarted
        console.print(f"{stack.api_sentence} at {stack.api.url}; {which}.", highlight=False)
        console.print(f"Operator: pid {operator.pid}, log {stack.operator_log}", highlight=False)
        console.print(f"HTTP API: {stack.http_url}/api/v1 (bearer tokens)", highlight=False, soft_wrap=True)
        console.print(f"\n    export KUBECONFIG={stack.kubeconfig}", highlight=False, soft_wrap=True)
        console.print(f"    export TARSY_DATABASE_URL='{stack.database_url}'\n", highlight=False, soft_wrap=True)
        console.print("    kubectl apply -f manifests/samples/alert-kubepodcrashlooping.yaml")
        console.print("    kubectl get talert,inv -A -w\n\nCtrl-C stops everything.", highlight=False)

        async def announce() -> None:
            if await is_open(stack.http_url):
                console.print(f"\n{link.sentence()}", highlight=False, soft_wrap=True)

        beside = [asyncio.create_task(operator.keep_running()), asyncio.create_task(announce())]
        try:
            await stop.wait()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)
            await operator.stop()
    return 0
