"""What GitOps prunes is gone for the next investigation, and hurts none that is under way."""

from typing import Any

import pytest
import yaml

from e2e.tenant import ANSWER, Tenant, condition

pytestmark = pytest.mark.timeout(240)

SCRIPT = f"agents: {{agent: [{{text: {ANSWER}, gate: first}}, {{text: {ANSWER}}}]}}"
PRUNED = ("Chain", "Agent", "MCPServer")


async def applied(tenant: Tenant, git: list[dict[str, Any]], *arguments: str) -> str:
    """Makes the namespace be as Git says, as GitOps tools do: with what is in Git no more removed."""
    label = ("-l", "gitops=test", "--prune", *(f"--prune-allowlist=tarsy.dev/v1alpha1/{kind}" for kind in PRUNED))
    allowed = (*label, "--prune-allowlist=core/v1/ConfigMap")
    status, output = await tenant.kubectl(
        "apply", "-f", "-", "--validate=false", *allowed, stdin=yaml.safe_dump_all(git), seconds=90
    )
    assert status == 0, output
    return output


def in_git(tenant: Tenant, api: str, kind: str, name: str, **body: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": tenant.namespace, "labels": {"gitops": "test"}}
    return {"apiVersion": api, "kind": kind, "metadata": meta, **body}


async def test_a_pruned_chain_does_not_hurt_the_run_that_follows_it(tenant: Tenant) -> None:
    if tenant.machine.kubectl is None:
        pytest.skip("there is no kubectl on this machine")
    model = await tenant.use_model(SCRIPT)
    await tenant.use_tools("other")
    server = await tenant.get("other", "MCPServer")
    stages = [{"name": name, "agents": [{"name": "agent"}]} for name in ("first", "second")]
    chain = {"llmProvider": "model", "stages": stages, "executiveSummary": {"enabled": False}}
    kept = in_git(tenant, "v1", "ConfigMap", "kept")
    git = [
        kept,
        in_git(tenant, "tarsy.dev/v1alpha1", "MCPServer", "tools", spec=server["spec"]),
        in_git(tenant, "tarsy.dev/v1alpha1", "Agent", "agent", spec={"mcpServers": [{"name": "tools"}]}),
        in_git(tenant, "tarsy.dev/v1alpha1", "Chain", "chain", spec=chain),
    ]
    await applied(tenant, git)
    identity = await tenant.investigate()
    await tenant.asked()

    output = await applied(tenant, [kept])
    assert {f"{kind.lower()}.tarsy.dev" for kind in PRUNED} == {
        line.split("/")[0] for line in output.splitlines() if line.endswith(" pruned")
    }
    await tenant.investigate("later")
    model.open_gate("first")

    inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert [call["stage_index"] for call in await tenant.model_calls(identity)] == [0, 1]
    assert condition(await tenant.get("later"), "Accepted") != "True"

    await applied(tenant, git)
    assert condition(await tenant.finished("later"), "Succeeded") == "True"
