"""One test's tenant: a namespace with a scripted model, a tool server, and what is built of them.

Every test has its own, so that tests share the machine and nothing else: a namespace, a model with a journal, a file
that counts tool calls, and short ways to make objects and to wait for what becomes of them.
"""

import asyncio
import base64
import json
import os
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from e2e.machine import Machine
from e2e.waiting import until
from tarsy.kube.client import KubeClient
from tarsy.kube.credentials import LABEL
from tarsy.kube.kinds import path
from tarsy.record.run import InvestigationRecord
from tarsy.resources.meta import API_VERSION
from tarsy.store.reading.reads import Reads
from tarsy_dev.model import ScriptedModel, parse_script
from tarsy_dev.objects import put
from tarsy_dev.stack import bind_secret_role

KEY = "sk-e2e-0123456789abcdef"
TOOL_SERVER = Path(__file__).with_name("tool_server.py")
SUMMARY = "The disk of node-1 is full."


def answer(confidence: str = "Low", *cites: tuple[str, str], summary: str = SUMMARY) -> str:
    """A final answer with its finding, quoted for a YAML script; `cites` are a tool and a quote of its last result."""
    citations = [{"callId": f"@callId({tool})", "quote": quote} for tool, quote in cites]
    claims = [{"text": summary, "citations": citations}] if cites else []
    finding = json.dumps({"summary": summary, "confidence": confidence, "claims": claims})
    return json.dumps(f"{summary}\n\n```finding\n{finding}\n```\n")


CONFIGURATION = ("Chain", "Agent", "InvestigationDefaults", "MCPServer", "LLMProvider")
ANSWER = answer()
"""A final answer that cites nothing, and claims no more confidence than that carries."""


class Tenant:
    """A namespace and what is in it; `namespace` exists already."""

    def __init__(self, machine: Machine, namespace: str, client: KubeClient, pool: asyncpg.Pool, folder: Path) -> None:
        self.machine = machine
        self.namespace = namespace
        self.client = client
        self.pool = pool
        self.reads = Reads(pool)
        self.folder = folder
        self.models: list[ScriptedModel] = []

    @property
    def model(self) -> ScriptedModel:
        """The model of the last `use_model`."""
        return self.models[-1]

    async def put(self, kind: str, name: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
        """Makes an object of this project in the namespace."""
        meta = {"name": name, "namespace": self.namespace, **metadata}
        return await put(self.client, {"apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": spec})

    async def noticed(self, kind: str, name: str) -> None:
        """Waits until the operator has seen an object as it is now, for what was changed before a run relies on it."""

        async def look() -> bool:
            obj = await self.get(name, kind)
            conditions = (obj.get("status") or {}).get("conditions") or ()
            return any(c.get("observedGeneration") == obj["metadata"]["generation"] for c in conditions)

        await until(f"the operator has seen {kind} {name}", look)

    async def use_model(self, script: str, *, name: str = "model", key: str = KEY) -> ScriptedModel:
        """Starts a model with a YAML script and makes the LLMProvider `name` for it, whose Secret holds `key`."""
        model = ScriptedModel(parse_script(script), api_key=KEY)
        self.models.append(model)
        base_url = await model.start()
        await bind_secret_role(self.client, self.namespace)
        secret = {"name": f"{name}-key", "namespace": self.namespace, "labels": {LABEL: "true"}}
        data = {"api-key": base64.b64encode(key.encode()).decode()}
        await put(self.client, {"apiVersion": "v1", "kind": "Secret", "metadata": secret, "data": data})
        reference = {"name": f"{name}-key", "key": "api-key"}
        spec = {"type": "openai", "model": "scripted", "baseURL": base_url, "apiKeySecretRef": reference}
        await self.put("LLMProvider", name, spec)
        return model

    async def use_tools(self, name: str = "tools", *arguments: str, **spec: Any) -> None:
        """Makes an MCPServer that runs `tool_server.py`; all its tools are for agents that may have all."""
        env = [
            {"name": "COUNT_FILE", "value": str(self.folder / "calls")},
            {"name": "GATE_FILE", "value": str(self.folder / "gate")},
        ]
        stdio = {"command": sys.executable, "args": [str(TOOL_SERVER), *arguments], "env": env}
        transport = {"type": "stdio", "stdio": stdio}
        await self.put("MCPServer", name, {"transport": transport, "toolPolicy": "All", **spec})

    def tool_calls(self, tool: str) -> int:
        """How often the tool server was asked for a tool."""
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return sum(line.split()[0] == tool for line in lines)

    async def use_agent(self, name: str = "agent", *servers: str, **spec: Any) -> None:
        """Makes an Agent with these tool servers, and all their tools."""
        selected = [{"name": server} for server in servers]
        await self.put("Agent", name, {"mcpServers": selected, "toolPolicy": "All", **spec})

    async def use_chain(self, *stages: list[str], name: str = "chain", summary: bool = False, **spec: Any) -> None:
        """Makes a Chain; a stage is the list of its agents.

        No finding is sent back unless `spec` has a `loop`: a script answers what its test is about.
        """
        body = [{"name": f"stage-{i}", "agents": [{"name": a} for a in s]} for i, s in enumerate(stages, 1)]
        usual = {"llmProvider": "model", "executiveSummary": {"enabled": summary}, "loop": {"findingRepairs": 0}}
        await self.put("Chain", name, {**usual, "stages": body, **spec})

    async def simple(self, script: str, **chain: Any) -> ScriptedModel:
        """A chain of one stage with one agent that has the tools, and its model; `agent` is its name in the script."""
        model = await self.use_model(script)
        await self.use_tools()
        await self.use_agent("agent", "tools")
        await self.use_chain(["agent"], **chain)
        return model

    async def investigate(self, name: str = "run", *, chain: str = "chain", **spec: Any) -> UUID:
        """Makes an Investigation; its id."""
        alert = {"alertType": "DiskFull", "data": "node-1: the disk is full"}
        made = await self.put("Investigation", name, {"alert": alert, "chainRef": {"name": chain}, **spec})
        return UUID(made["metadata"]["uid"])

    async def want(self, name: str, desired: str) -> None:
        """Sets the desired state."""
        await self.client.patch("Investigation", self.namespace, name, {"spec": {"desiredState": desired}})

    async def get(self, name: str = "run", kind: str = "Investigation") -> dict[str, Any]:
        """The object as it is."""
        return await self.client.get(kind, self.namespace, name)

    async def finished(self, name: str = "run", seconds: float = 300.0) -> dict[str, Any]:
        """The Investigation once it is Finished and its status has caught up with the record."""

        async def look() -> Any:
            inv = await self.get(name)
            record = await self.reads.record(UUID(inv["metadata"]["uid"]))
            behind = record is not None and inv.get("status", {}).get("recordRevision", 0) < record.revision
            return inv if condition(inv, "Finished") == "True" and not behind else None

        try:
            return await until(f"investigation {name} is finished", look, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{await self._why(name)}") from None

    async def phase(self, wanted: str, name: str = "run", seconds: float = 240.0) -> dict[str, Any]:
        """The Investigation once it is in a phase."""

        async def look() -> Any:
            inv = await self.get(name)
            return inv if inv.get("status", {}).get("phase") == wanted else None

        return await until(f"investigation {name} is {wanted}", look, seconds)

    async def asked(self, number: int = 1, seconds: float = 240.0) -> None:
        """Waits until the model was asked so many times."""
        try:
            await self.model.journal.wait_for(lambda requests: len(requests) >= number, seconds)
        except TimeoutError:
            asked = len(self.model.journal.requests)
            log = self.machine.log.read_text(errors="replace")[-6000:] if self.machine.log.exists() else ""
            text = f"asked {asked} times within {seconds:g} s, not {number}; the operators' log ends:\n{log}"
            raise AssertionError(text) from None

    async def record(self, identity: UUID) -> InvestigationRecord:
        """The record of an investigation."""
        found = await self.reads.record(identity)
        assert found is not None, f"there is no record of {identity}"
        return found

    async def rows(self, query: str, *arguments: Any) -> list[asyncpg.Record]:
        """Rows of the record, read as they are."""
        return list(await self.pool.fetch(query, *arguments))

    async def model_calls(self, identity: UUID) -> list[asyncpg.Record]:
        """The model calls of an investigation, in the order of stages, agents and calls."""
        return await self.rows(
            "SELECT c.*, e.agent, e.display_name, s.index AS stage_index FROM llm_interaction c "
            "JOIN execution e ON e.id = c.execution JOIN stage s ON s.id = e.stage "
            "WHERE s.investigation = $1 ORDER BY s.index, e.index, c.number",
            identity,
        )

    async def mcp_calls(self, identity: UUID) -> list[asyncpg.Record]:
        """The tool calls of an investigation."""
        return await self.rows(
            "SELECT c.*, e.display_name FROM mcp_interaction c JOIN execution e ON e.id = c.execution "
            "JOIN stage s ON s.id = e.stage WHERE s.investigation = $1 "
            "ORDER BY s.index, e.index, c.message_seq, c.index, c.attempt",
            identity,
        )

    async def start_kubectl(self, *arguments: str, editor: str = "false") -> asyncio.subprocess.Process:
        """Starts the real kubectl in the namespace; its errors are on its output."""
        program = self.machine.kubectl
        assert program is not None, "there is no kubectl on this machine"
        kubeconfig = ("--kubeconfig", str(self.machine.api.kubeconfig), "-n", self.namespace)
        return await asyncio.create_subprocess_exec(
            str(program),
            *kubeconfig,
            *arguments,
            env={"PATH": os.environ["PATH"], "HOME": str(self.machine.folder), "KUBE_EDITOR": editor},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def kubectl(
        self, *arguments: str, stdin: str | None = None, editor: str = "false", seconds: float = 120.0
    ) -> tuple[int, str]:
        """Runs kubectl; exit status, and output with errors."""
        process = await self.start_kubectl(*arguments, editor=editor)
        try:
            async with asyncio.timeout(seconds):
                output, _ = await process.communicate(None if stdin is None else stdin.encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode or 0, output.decode()

    async def leave(self) -> None:
        """Deletes the runs, so that none goes on, and what each later operator would check again; stops the models."""
        for kind in ("Alert", "Investigation", *CONFIGURATION):
            await self.client.request("DELETE", path(kind, self.namespace))
        for model in self.models:
            await model.stop()

    async def _why(self, name: str) -> str:
        inv = await self.get(name)
        record = await self.reads.record(UUID(inv["metadata"]["uid"]))
        log = self.machine.log.read_text(errors="replace")[-3000:] if self.machine.log.exists() else ""
        return f"status: {inv.get('status')}\nrecord: {record}\nthe operator's log ends:\n{log}"


def condition(obj: dict[str, Any], kind: str, field: str = "status") -> str:
    """A field of a condition, empty when there is none."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((str(c.get(field, "")) for c in conditions if c["type"] == kind), "")
