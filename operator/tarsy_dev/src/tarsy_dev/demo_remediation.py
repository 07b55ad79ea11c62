"""Implements `tarsy demo --scenario remediation`: from an alert to a change that a person approved.

The finding and the proposal are the model's; the approval is a second person's, who is not the one who submitted the
alert; the change is made by the real `kubernetes-mcp-server`, as the account of the component `tenant-remediation`. On
a Kubernetes API without admission policies nothing can be approved, and the demo says so.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from tarsy.cli.console import new_console
from tarsy.cli.requests.approvals import list_waiting
from tarsy.cli.requests.deciding import Confirmation, decide_call
from tarsy.client.aggregated import AggregatedClient
from tarsy.client.kubeconfig import ChosenContext
from tarsy.kube.client import KubeClient
from tarsy.record.run import InvestigationRecord, State
from tarsy_dev.admission import POLICIES_SINCE
from tarsy_dev.apiserver.binaries import find_binaries, program_version
from tarsy_dev.apiserver.errors import LocalKubernetesError
from tarsy_dev.apiserver.extensions_build import find_extensions
from tarsy_dev.demo import follow_alert, operated, show, stay_open
from tarsy_dev.develop import STARTING, configured_model, prepare
from tarsy_dev.kubectl import run_kubectl
from tarsy_dev.kubernetes_mcp import program
from tarsy_dev.model import scenario_script
from tarsy_dev.objects import manifest, put
from tarsy_dev.person import user
from tarsy_dev.remedies import Remedy, RemedyChoice, alert_of, chosen_remedies, put_remedy
from tarsy_dev.sample import SHOP
from tarsy_dev.serving import until_serving
from tarsy_dev.sign_in_link import SignInLink, make_link
from tarsy_dev.stack import LIBRARY, SCRIPTED, ApiChoice, Stack, running_stack

APPROVER = "anna"
WAIT_SECONDS = 240.0
_LAST_WORDS_SECONDS = 5.0
T = TypeVar("T")


async def demonstrate_remediation(
    keep: Path | None, model: str | None, base_url: str | None, api: ApiChoice, remedy: RemedyChoice = "key"
) -> int:
    """Runs the demo; returns exit status 0 only if every approved change was made and is there.

    Args:
        keep: folder for objects and record; None deletes them at the end.
        model: name of a real model.
        base_url: URL of an OpenAI-compatible server.
        api: which Kubernetes API to use.
        remedy: which changes to show.

    Raises:
        LocalKubernetesError: kubernetes-mcp-server cannot be had or something does not start; the message says why.
    """
    console = new_console(markup=False)
    tools = await asyncio.to_thread(program)
    began = time.monotonic()
    remedies = chosen_remedies(remedy)
    async with contextlib.AsyncExitStack() as house:
        if not console.is_terminal:
            console.print(STARTING)
        with console.status(STARTING):
            stack = await house.enter_async_context(running_stack(keep, api=_api_of_this_machine(api, keep)))
            real = configured_model(model, base_url)
            which = await prepare(stack, real or scenario_script(remedies[0].script))
            await install_remediation(stack, tools, None if real else SCRIPTED)
            link = await make_link(stack)
            await house.enter_async_context(operated(stack, link))
            await until_serving(stack)
        console.print(f"{stack.api_sentence}; {which}.  (started in {time.monotonic() - began:.1f} s)")
        made = []
        for number, one in enumerate(remedies):
            if number and not real:
                await stack.use_model(scenario_script(one.script))
            made.append(await _remedied(console, stack, link, one))
        await stay_open(console)
    return 0 if all(made) else 1


async def _remedied(console: Console, stack: Stack, link: SignInLink, remedy: Remedy) -> bool:
    """Shows one change from its alert to its outcome; returns whether it was made."""
    async with await KubeClient.load(stack.person_kubeconfig) as person:
        await put_remedy(stack.client, remedy)
        alert = await alert_of(person, remedy)
        await put(person, alert)
    name = alert["metadata"]["name"]
    console.print(f"\nalert.tarsy.dev/{name} created  (by {stack.person})\n")
    before = {obj["metadata"]["uid"] for obj in await _executed(stack)}
    async with asyncio.TaskGroup() as group:
        deciding = group.create_task(_decide(console, stack, remedy))
        record = await follow_alert(console, stack, link, name)
        await asyncio.wait([deciding], timeout=_LAST_WORDS_SECONDS)
        deciding.cancel()  # the model proposed nothing
    made = await _outcome(console, stack, record, remedy, before)
    await show(console, stack, record)
    return made


def api_with_policies(api: ApiChoice, real: tuple[int, int] | None, *, built: bool, keep: bool) -> ApiChoice:
    """Returns an API with admission policies for `auto` where the real one of this machine is too old for them.

    That of Kubernetes 1.36's own machinery where it was built (`make kube-extensions`), else the embedded one.

    Args:
        api: as chosen.
        real: version of the real one; None: there is none.
        built: whether that of 1.36 is there.
        keep: whether objects are kept, which that of 1.36 does not do.
    """
    if api != "auto" or real is None or real >= POLICIES_SINCE:
        return api
    return "newer" if built and not keep else "embedded"


def _api_of_this_machine(api: ApiChoice, keep: Path | None) -> ApiChoice:
    found = find_binaries()
    version = program_version(found.kube_apiserver)[:2] if found is not None else None
    return api_with_policies(api, version, built=find_extensions() is not None, keep=keep is not None)


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


async def _decide(console: Console, stack: Stack, remedy: Remedy) -> None:
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
    console.print(f"\n{APPROVER}, who may approve and did not submit the alert:", soft_wrap=True)
    if remedy.by_kubectl and stack.kubectl is not None:
        await _approve_with_kubectl(console, stack, name)
        return
    async with await KubeClient.load(stack.api.kubeconfig_for(APPROVER)) as client:
        door = AggregatedClient(client, ChosenContext(None, APPROVER, SHOP))
        console.print(f"$ kubectl tarsy approvals -n {SHOP}")
        await list_waiting(door, SHOP, "text", decided=False)
        console.print(f"\n$ kubectl tarsy approve {name} -n {SHOP} --yes", soft_wrap=True)
        await decide_call(door, SHOP, name, "Approve", "text", confirmation=Confirmation(yes=True))
        console.print()


async def _approve_with_kubectl(console: Console, stack: Stack, name: str) -> None:
    """Approves without the plugin: the decision is one entry of the object, which the policy checks."""
    anna = stack.api.kubeconfig_for(APPROVER)

    async def said(*arguments: str) -> str:
        shown = " ".join(f"'{one}'" if "{" in one else one for one in arguments)
        console.print(f"$ kubectl {shown}", soft_wrap=True)
        output = await run_kubectl(stack, list(arguments), anna)
        console.print(output, soft_wrap=True)
        return output

    await said("get", "tapp", "-n", SHOP)
    await said("describe", "tapp", name, "-n", SHOP)
    digest = (await stack.client.get("ToolApproval", SHOP, name))["spec"]["argumentsDigest"]
    decision = {"username": APPROVER, "decision": "Approve", "argumentsDigest": digest}
    change = json.dumps([{"op": "add", "path": "/spec/decisions/-", "value": decision}])
    await said("patch", "tapp", name, "-n", SHOP, "--type=json", "-p", change)


async def _waiting(stack: Stack) -> str | None:
    """Returns the name of the ToolApproval of a run that is parked."""
    for obj in await stack.client.list("ToolApproval", SHOP):
        if (obj.get("status") or {}).get("phase") == "Pending":
            return str(obj["metadata"]["name"])
    return None


async def _is_settled(stack: Stack) -> bool:
    """Whether no ToolApproval is open: the status follows the record."""
    found = await stack.client.list("ToolApproval", SHOP)
    return all((obj.get("status") or {}).get("phase", "Pending") not in ("Pending", "Approved") for obj in found)


async def _executed(stack: Stack) -> list[dict[str, Any]]:
    found = await stack.client.list("ToolApproval", SHOP)
    return [obj for obj in found if (obj.get("status") or {}).get("phase") == "Executed"]


async def _outcome(
    console: Console, stack: Stack, record: InvestigationRecord, remedy: Remedy, before: Collection[str]
) -> bool:
    """Prints what became of the proposal and of the object; returns whether the change is there."""
    await _until("the status of the call is written", lambda: _is_settled(stack))
    console.print(f"\n$ kubectl get tapp -n {SHOP} -o wide", soft_wrap=True)
    console.print(await run_kubectl(stack, ["get", "tapp", "-n", SHOP, "-o", "wide"]), soft_wrap=True)
    there = remedy.made(await stack.client.get(remedy.kind, SHOP, remedy.name))
    console.print(f"{remedy.kind} {SHOP}/{remedy.name} {'has' if there else 'does not have'} {remedy.what}.")
    sent = [obj for obj in await _executed(stack) if obj["metadata"]["uid"] not in before]
    console.print(f"{len(sent)} approved call sent." if sent else "No call that changes something was sent.")
    return record.state is State.COMPLETED and there and len(sent) == 1


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
