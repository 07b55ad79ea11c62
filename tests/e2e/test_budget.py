"""A budget on the whole product: what `kubectl get inv` shows of money, and of a limit that was reached."""

import pytest

from e2e.tenant import ANSWER, Tenant, condition

USAGE = "usage: {prompt_tokens: 900, completion_tokens: 100}"
LOOK = "\n".join(
    f"    - {{text: I look., calls: [{{name: tools.look, arguments: {{what: disk-{i}}}}}], {USAGE}}}" for i in range(3)
)
SCRIPT = f"""
agents:
  agent:
{LOOK}
    - {{text: {ANSWER}, {USAGE}}}
"""
RATES = {"inputPerMillion": 2.0, "outputPerMillion": 10.0}


async def priced(tenant: Tenant) -> None:
    """Gives the model its rates."""
    spec = (await tenant.get("model", "LLMProvider"))["spec"]
    await tenant.put("LLMProvider", "model", {**spec, "rates": RATES})
    await tenant.noticed("LLMProvider", "model")


async def test_without_a_budget_the_cost_is_shown(tenant: Tenant) -> None:
    await tenant.simple(SCRIPT)
    await priced(tenant)
    await tenant.investigate()

    inv = await tenant.finished()

    assert condition(inv, "Succeeded") == "True" and condition(inv, "BudgetExceeded") == "False"
    assert (inv["status"]["usage"]["costUSD"], inv["status"]["usage"]["totalTokens"]) == ("0.0112", 4000)
    code, out = await tenant.kubectl("get", "inv", "run")
    assert code == 0 and "COST" in out and "0.0112" in out


@pytest.mark.parametrize(
    ("budget", "reason", "tools"),
    [({"toolCalls": 2}, "ToolCalls", 2), ({"tokens": 3500}, "Tokens", 2), ({"costUSD": 0.009}, "Cost", 2)],
    ids=["tools", "tokens", "cost"],
)
async def test_a_reached_limit_forces_a_conclusion_and_is_a_condition(
    tenant: Tenant, budget: dict[str, float], reason: str, tools: int
) -> None:
    await tenant.simple(SCRIPT, budget=budget)
    await priced(tenant)
    identity = await tenant.investigate()

    inv = await tenant.finished()

    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert condition(inv, "BudgetExceeded") == "True"
    assert condition(inv, "BudgetExceeded", "reason") == reason
    assert "budget" in condition(inv, "BudgetExceeded", "message")
    assert tenant.tool_calls("look") <= tools
    kinds = [row["kind"] for row in await tenant.model_calls(identity)]
    assert kinds.count("forced_conclusion") == 1
    assert inv["status"]["usage"]["totalTokens"] <= budget.get("tokens", 5000)
