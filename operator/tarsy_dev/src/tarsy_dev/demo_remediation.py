"""Implements `tarsy demo --scenario remediation`: from a crash loop to a change that a person approved.

The finding and the proposal are the model's; the approval is a second person's, who is not the one who submitted the
alert; the change is made by the real `kubernetes-mcp-server`, as the account of the component `tenant-remediation`. On
a Kubernetes API without admission policies nothing can be approved, and the demo says so.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from tarsy.cli.approvals import list_waiting
from tarsy.cli.console import new_console
from tarsy.cli.deciding import Confirmation, decide_call
from tarsy.client.aggregated import AggregatedClient
from tarsy.client.kubeconfig import ChosenContext
from tarsy.kube.client import KubeClient
from tarsy.record.run import InvestigationRecord, State
from tarsy_dev.admission import POLICIES_SINCE
from tarsy_dev.apiserver.binaries import find_binaries, program_version
from tarsy_dev.apiserver.errors import LocalKubernetesError
from tarsy_dev.demo import follow_alert, operated, show, stay_open
from tarsy_dev.develop import STARTING, configured_model, prepare
from tarsy_dev.kubectl import run_kubectl
from tarsy_dev.kubernetes_mcp import program
from tarsy_dev.model import scenario_script
from tarsy_dev.objects import manifest, put
from tarsy_dev.person import user
from tarsy_dev.sample import SHOP, sample_alert
from tarsy_dev.serving import until_serving
from tarsy_dev.sign_in_link import make_link
from tarsy_dev.stack import LIBRARY, SCRIPTED, ApiChoice, Stack, running_stack

CHAIN = "kubernetes-remediation"
APPROVER = "anna"
RUNBOOK = """\
# checkout
- It reads its configuration from ConfigMap checkout-config and does not start without PAYMENT_API_URL.
- The payment service is at http://payments.shop.svc:8080.
"""
"""A call leads to no address that only results of tools name: this one is known from the team."""
WAIT_SECONDS = 240.0
_LAST_WORDS_SECONDS = 5.0
_CONFIG, _KEY = "checkout-config", "PAYMENT_API_URL"
T = TypeVar("T")


async def demonstrate_remediation(keep: Path | None, model: str | None, base_url: str | None, api: ApiChoice) -> int:
    """Runs the demo; returns exit status 0 only if the approved change was made and is there.

    Args:
        keep: folder for objects and record; None deletes them at the end.
        model: name of a real model.
        base_url: URL of an OpenAI-compatible server.
        api: which Kubernetes API to use.

    Raises:
        LocalKubernetesError: kubernetes-mcp-server cannot be had or something does not start; the message says why.
    """
    console = new_console(markup=False)
    tools = await asyncio.to_thread(program)
    began = time.monotonic()
    async with contextlib.AsyncExitStack() as house:
        if not console.is_terminal:
            console.print(STARTING)
        with console.status(STARTING):
            stack = await house.enter_async_context(running_stack(keep, api=api_with_policies(api)))
            real = configured_model(model, base_url)
            which = await prepare(stack, real or scenario_script("remediation"))
            await install_remediation(stack, tools, None if real else SCRIPTED)
            link = await make_link(stack)
            await house.enter_async_context(operated(stack, link))
            await until_serving(stack)
        person = await house.enter_async_context(await KubeClient.load(stack.person_kubeconfig))
        alert = await sample_alert(person, "crash-loop")
        alert = {**alert, "spec": {**alert["spec"], "chainRef": {"name": CHAIN}, "runbook": {"inline": RUNBOOK}}}
        await put(person, alert)
        console.print(f"{stack.api_sentence}; {which}.")
        name = alert["metadata"]["name"]
        seconds = time.monotonic() - began
        console.print(f"alert.tarsy.dev/{name} created  (by {stack.person}, {seconds:.1f} s after the start)\n")
        async with asyncio.TaskGroup() as group:
            deciding = group.create_task(_decide(console, stack))
            record = await follow_alert(console, stack, link, name)
            await asyncio.wait([deciding], timeout=_LAST_WORDS_SECONDS)
            deciding.cancel()  # the model proposed nothing
        made = await _outcome(console, stack, record)
        await show(console, stack, record)
        await stay_open(console)
    return 0 if made else 1


def api_with_policies(api: ApiChoice) -> ApiChoice:
    """Returns the embedded API for `auto` where the real one of this machine is too old for admission policies."""
    found = find_binaries() if api == "auto" else None
    if found is not None and program_version(found.kube_apiserver)[:2] < POLICIES_SINCE:
        return "embedded"
    return api


async def install_remediation(stack: Stack, tools: Path, provider: str | None) -> None:
    """Puts the components `remediation` and `tenant-remediation`, with the tools as a command of this machine.

    Args:
        stack: with library and sample namespace.
        tools: the program kubernetes-mcp-server.
        provider: LLMProvider of the chain; None: the one that the chain names.
    """
    for name in ("account", "tokens"):
        for obj in manifest(f"components/tenant-remediation/{name}.yaml"):
            placed = {**obj, "metadata": {**obj["metadata"], "namespace": SHOP}}
            if "subjects" in obj:
                placed["subjects"] = [{"namespace": SHOP, **one} for one in obj["subjects"]]
            await put(stack.client, placed)
    for name in ("mcpserver", "agent", "chain"):
        for obj in manifest(f"components/remediation/{name}.yaml"):
            await put(stack.client, _here(obj, tools, provider))
    for namespace in (SHOP, LIBRARY):
        await put(stack.client, _binding("tarsy-approver", namespace))
    await put(stack.client, _binding("tarsy-viewer", SHOP))


def _here(obj: Mapping[str, Any], tools: Path, provider: str | None) -> dict[str, Any]:
    """Returns an object of the component for this machine, where no pods run."""
    spec = dict(obj["spec"])
    if obj["kind"] == "MCPServer":
        command = spec.pop("run")["command"]
        spec["transport"] = {"type": "stdio", "stdio": {"command": str(tools), "args": command[1:], "kubeconfig": True}}
    elif obj["kind"] == "Chain" and provider is not None:
        spec["llmProvider"] = provider
    return {**obj, "spec": spec}


def _binding(role: str, namespace: str) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"{role}-{APPROVER}", "namespace": namespace},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [user(APPROVER)],
    }


async def _decide(console: Console, stack: Stack) -> None:
    """Waits for the proposal, and approves it as another person; on an API without policies, withdraws it."""
    name = await _until("the agent proposes a change", lambda: _waiting(stack))
    if stack.api.version < POLICIES_SINCE:
        console.print(
            f"\nThis Kubernetes API ({'.'.join(map(str, stack.api.version))}) has no ValidatingAdmissionPolicies "
            "(1.30): anybody could write a decision in the name of another, so TARSy executes nothing that needs "
            "approval. The demo deletes the request, and the run goes on without the call.\n",
            soft_wrap=True,
        )
        await stack.client.delete("ToolApproval", SHOP, name)
        return
    async with await KubeClient.load(stack.api.kubeconfig_for(APPROVER)) as client:
        door = AggregatedClient(client, ChosenContext(None, APPROVER, SHOP))
        console.print(
            f"\n{APPROVER}, who may approve and did not submit the alert:\n$ kubectl tarsy approvals -n {SHOP}"
        )
        await list_waiting(door, SHOP, "text", decided=False)
        console.print(f"\n$ kubectl tarsy approve {name} -n {SHOP} --yes", soft_wrap=True)
        await decide_call(door, SHOP, name, "Approve", "text", confirmation=Confirmation(yes=True))
        console.print()


async def _waiting(stack: Stack) -> str | None:
    """Returns the name of the ToolApproval of a run that is parked."""
    for obj in await stack.client.list("ToolApproval", SHOP):
        if (obj.get("status") or {}).get("phase") == "Pending":
            return str(obj["metadata"]["name"])
    return None


async def _outcome(console: Console, stack: Stack, record: InvestigationRecord) -> bool:
    """Prints what became of the proposal and of the object; returns whether the change is there."""
    console.print(f"\n$ kubectl get tapp -n {SHOP} -o wide", soft_wrap=True)
    console.print(await run_kubectl(stack, ["get", "tapp", "-n", SHOP, "-o", "wide"]), soft_wrap=True)
    found = await stack.client.get("ConfigMap", SHOP, _CONFIG)
    there = _KEY in found["data"]
    console.print(f"ConfigMap {SHOP}/{_CONFIG} {'has' if there else 'does not have'} the key {_KEY}.")
    executed = [
        obj
        for obj in await stack.client.list("ToolApproval", SHOP)
        if (obj.get("status") or {}).get("phase") == "Executed"
    ]
    console.print(f"{len(executed)} approved call sent." if executed else "No call that changes something was sent.")
    return record.state is State.COMPLETED and there and len(executed) == 1


async def _until(what: str, look: Callable[[], Awaitable[T | None]]) -> T:
    """Waits until something is there, and returns it.

    Raises:
        LocalKubernetesError: not in time.
    """
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                if found := await look():
                    return found
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise LocalKubernetesError(f"{what}: not within {WAIT_SECONDS:g} s") from None
