"""The metrics of an operator that people run: what one investigation adds to them is what its record says."""

import re
from collections import Counter
from functools import partial
from typing import Any

import aiohttp
import pytest

from e2e.tenant import Tenant, answer, condition
from e2e.waiting import until
from tarsy.observe.metric_table import ALL
from tarsy_dev.apiserver.process import free_port

SCRIPT = f"""
agents:
  look:
    - text: I look.
      calls:
        - {{name: tools.look, arguments: {{what: df}}}}
        - {{name: tools.refuse, arguments: {{what: du}}}}
    - text: The disk is nearly full.
  judge:
    - text: I look again.
      calls: [{{name: tools.look, arguments: {{what: log}}}}]
    - text: {answer("High", ("tools.look", "look saw log"), ("tools.look", "look saw nothing of the kind"))}
"""
_SAMPLE = re.compile(r"^(\w+)(\{.*\})? (\S+)$", re.MULTILINE)


class Scrape:
    """The metrics at an address."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/metrics"

    async def __call__(self) -> Counter[str]:
        async with aiohttp.ClientSession() as http, http.get(self.url) as answered:
            assert answered.status == 200 and answered.content_type == "text/plain"
            text = await answered.text()
        return Counter({name + labels: float(value) for name, labels, value in _SAMPLE.findall(text)})

    async def when(self, what: str, **values: float) -> Counter[str]:
        """What is told once these are so; gauges of the record are some seconds old."""

        last: list[object] = []

        async def look() -> Any:
            last.clear()
            try:
                told = await self()
            except aiohttp.ClientError as error:
                last.append(error)
                return None
            last.extend(f"{name} is {told.get(name)}" for name, value in values.items() if told.get(name) != value)
            return None if last else told

        try:
            found: Counter[str] = await until(what, look, 300)
        except AssertionError as error:
            raise AssertionError(f"{error}: {last}") from None
        return found


@pytest.mark.once("what is counted does not depend on the Kubernetes API")
async def test_an_investigation_adds_to_the_metrics_what_its_record_says(bare_tenant: Tenant) -> None:
    tenant, port = bare_tenant, free_port()
    await tenant.machine.operator("--metrics-port", str(port))
    scrape = Scrape(port)
    await tenant.use_model(SCRIPT)
    await tenant.use_tools()
    for agent in ("look", "judge"):
        await tenant.use_agent(agent, "tools")
    await tenant.use_chain(["look"], ["judge"])
    idle = {"tarsy_investigations_queued": 0.0, "tarsy_investigations_running": 0.0}
    await until("the Chain is Ready", partial(ready, tenant))
    before = await scrape.when("the operator is active", tarsy_controller_active=1.0, tarsy_record_up=1.0, **idle)

    identity = await tenant.investigate()
    inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "True", inv["status"]

    ended = 'tarsy_investigations_terminal_total{kind="investigation",state="completed"}'
    record_read = {"tarsy_record_up": 1.0, "tarsy_projection_pending": 0.0, "tarsy_workers": 1.0, **idle}
    settled = {ended: before[ended] + 1, "tarsy_worker_places": 20.0, **record_read}
    after = await scrape.when("the run is over, and nothing is late", **settled)
    record = await tenant.record(identity)
    assert record.model_calls == 4 and record.tool_calls == 3 and record.cost_usd is None
    grown = {name: value for name, value in (after - before).items() if "_bucket" not in name}
    calls = 'kind="iteration",outcome="completed",provider_type="openai"'
    expected = {
        'tarsy_investigations_submitted_total{kind="investigation"}': 1,
        'tarsy_investigations_claimed_total{attempt="first",kind="investigation"}': 1,
        ended: 1,
        'tarsy_investigation_wait_seconds_count{kind="investigation"}': 1,
        'tarsy_investigation_duration_seconds_count{kind="investigation"}': 1,
        'tarsy_stages_total{kind="investigation",state="completed"}': len(record.stages),
        'tarsy_agent_executions_total{state="completed",strategy="langchain"}': 2,
        f"tarsy_llm_calls_total{{{calls}}}": record.model_calls,
        'tarsy_llm_duration_seconds_count{provider_type="openai"}': record.model_calls,
        'tarsy_llm_tokens_total{kind="input",provider_type="openai"}': record.usage.input_tokens,
        'tarsy_llm_tokens_total{kind="output",provider_type="openai"}': record.usage.output_tokens,
        'tarsy_llm_unpriced_calls_total{provider_type="openai"}': record.model_calls,
        'tarsy_mcp_calls_total{outcome="completed",transport="stdio"}': 2,
        'tarsy_mcp_calls_total{outcome="failed",transport="stdio"}': 1,
        'tarsy_mcp_errors_total{outcome="failed",transport="stdio"}': 1,
        'tarsy_mcp_duration_seconds_count{transport="stdio"}': record.tool_calls,
        'tarsy_findings_total{confidence="Medium"}': 1,
        'tarsy_evidence_citations_total{outcome="held"}': 1,
        'tarsy_evidence_citations_total{outcome="failed"}': 1,
    }
    runs = (
        "tarsy_investigation",
        "tarsy_stages",
        "tarsy_agent",
        "tarsy_llm",
        "tarsy_mcp_",
        "tarsy_finding",
        "tarsy_evid",
    )
    counted = {n: v for n, v in grown.items() if n.startswith(runs) and "_seconds_sum" not in n}
    assert counted == expected
    assert after['tarsy_configuration_objects{condition="Ready",kind="Chain",status="True"}'] >= 1
    text = " ".join(after)
    assert tenant.namespace not in text and "DiskFull" not in text and "tools" not in text.replace("tool_results", "")
    assert {re.split(r"[{ ]", name)[0].removesuffix(s) for name in after for s in _suffix(name)} <= {
        m.name for m in ALL
    }

    async with aiohttp.ClientSession() as http:
        for method, path, status in (("POST", "/metrics", 405), ("GET", "/", 404), ("GET", "/healthz", 404)):
            async with http.request(method, scrape.url.replace("/metrics", path)) as answered:
                assert answered.status == status


async def ready(tenant: Tenant) -> bool:
    return condition(await tenant.get("chain", "Chain"), "Ready") == "True"


def _suffix(sample: str) -> tuple[str]:
    name = sample.partition("{")[0]
    return next(((s,) for s in ("_bucket", "_sum", "_count") if name.endswith(s)), ("",))
