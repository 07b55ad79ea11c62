"""Prints objects as kubectl does; without kubectl, uses the server's table and YAML."""

import asyncio
import os
from pathlib import Path

import yaml

from tarsy_dev.stack import Stack

KUBECTL_SECONDS = 30.0


async def run_kubectl(stack: Stack, arguments: list[str], kubeconfig: Path | None = None) -> str:
    """Returns the output of one kubectl command against the stack.

    Args:
        stack: started.
        arguments: of kubectl.
        kubeconfig: of who calls; None: of the person of this machine.
    """
    kubectl = stack.kubectl
    if kubectl is None:
        return await _without(stack, arguments)
    process = await asyncio.create_subprocess_exec(
        str(kubectl),
        *arguments,
        env={
            "PATH": os.environ.get("PATH", ""),
            "KUBECONFIG": str(kubeconfig or stack.person_kubeconfig),
            "HOME": str(stack.folder),
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(KUBECTL_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"kubectl did not answer within {KUBECTL_SECONDS:g} s"
    return output.decode(errors="replace").rstrip()


async def _without(stack: Stack, arguments: list[str]) -> str:
    namespace = arguments[arguments.index("-n") + 1]
    parts = ["(kubectl is not installed; this is what the API server answers)"]
    for kind in ("Alert", "Investigation"):
        for obj in await stack.client.list(kind, namespace):
            shown = obj if arguments[0] == "describe" else {"kind": kind, "status": obj.get("status")}
            if arguments[0] != "describe" or kind == "Investigation":
                parts.append(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True))
    return "\n".join(parts)
