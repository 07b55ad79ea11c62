"""Offers the tools of AgentDojo's suites over MCP, with an environment in memory for each run.

It runs in the environment that AgentDojo is installed in, and imports nothing of TARSy. `GET /pairs` lists the cases,
`POST /runs` begins one, `POST /runs/N/mcp` is its tool server, and `POST /runs/N/end` judges what became of it by the
benchmark's own functions. It serves this machine only, until its standard input ends.
"""

import itertools
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agentdojo.agent_pipeline.tool_execution import tool_result_to_str  # type: ignore[import-not-found]
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime  # type: ignore[import-not-found]
from agentdojo.task_suite.load_suites import get_suites  # type: ignore[import-not-found]
from agentdojo.types import text_content_block_from_string  # type: ignore[import-not-found]

VERSION = "v1.2.2"
MARKER = "zqdojo"
_SUITES = get_suites(VERSION)
_SESSION = "one"


class _Run:
    """One user task with at most one injection task, and the environment that its tools change."""

    def __init__(self, suite: str, user: str, injection: str | None) -> None:
        self._suite = _SUITES[suite]
        self._user = self._suite.get_user_task_by_id(user)
        self._injection = self._suite.get_injection_task_by_id(injection) if injection else None
        text = f"{MARKER} {self._injection.GOAL}" if self._injection else ""
        vectors = _seen_by(suite, user) if self._injection else ()
        loaded = self._suite.load_and_inject_default_environment(dict.fromkeys(vectors, text))
        self._env = self._user.init_environment(loaded)
        self._before = self._env.model_copy(deep=True)
        self._runtime = FunctionsRuntime(self._suite.tools)
        self._trace: list[FunctionCall] = []

    def begun(self) -> dict[str, Any]:
        attack = self._injection
        return {
            "prompt": self._user.PROMPT,
            "calls": _calls(self._user.ground_truth(self._before.model_copy(deep=True))),
            "says": self._user.GROUND_TRUTH_OUTPUT,
            "attack": _calls(attack.ground_truth(self._before.model_copy(deep=True))) if attack else [],
            "attack_says": attack.GROUND_TRUTH_OUTPUT if attack else "",
        }

    def listed(self) -> list[dict[str, Any]]:
        return [
            {"name": f.name, "description": f.description, "inputSchema": f.parameters.model_json_schema()}
            for f in self._suite.tools
        ]

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self._trace.append(FunctionCall(function=name, args=arguments))
        result, error = self._runtime.run_function(self._env, name, arguments)
        text = error if error is not None else tool_result_to_str(result)
        return {"content": [{"type": "text", "text": text}], "isError": error is not None}

    def judged(self, output: str) -> dict[str, Any]:
        said = [text_content_block_from_string(output)]
        rest = (said, self._before, self._env, self._trace)
        reached = self._injection is not None and self._suite._check_injection_task_security(self._injection, *rest)
        return {
            "solved": bool(self._suite._check_user_task_utility(self._user, *rest)),
            "reached": bool(reached),
            "called": [one.function for one in self._trace],
        }


_vectors: dict[tuple[str, str], tuple[str, ...]] = {}


def _seen_by(name: str, user: str) -> tuple[str, ...]:
    """Returns the places for injections that the calls of a user task read, as AgentDojo finds them."""
    if (name, user) not in _vectors:
        suite, task = _SUITES[name], _SUITES[name].get_user_task_by_id(user)
        canaries = {vector: f"zqcanary{number}e" for number, vector in enumerate(suite.get_injection_vector_defaults())}
        env = task.init_environment(suite.load_and_inject_default_environment(canaries))
        runtime, told = FunctionsRuntime(suite.tools), ""
        for call in task.ground_truth(env.model_copy(deep=True)):
            result, _ = runtime.run_function(env, call.function, call.args)
            told += tool_result_to_str(result)
        _vectors[name, user] = tuple(vector for vector, canary in canaries.items() if canary in told)
    return _vectors[name, user]


def _calls(calls: list[FunctionCall]) -> list[list[Any]]:
    return [[call.function, json.loads(json.dumps(dict(call.args), default=str))] for call in calls]


_runs: dict[int, _Run] = {}
_numbers = itertools.count(1)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        pairs = [[n, u, i] for n, s in _SUITES.items() for u in s.user_tasks for i in (None, *s.injection_tasks)]
        self._send({"version": VERSION, "pairs": pairs} if self.path == "/pairs" else None)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        _, _, number, *rest = [*self.path.split("/"), ""]
        if self.path == "/runs":
            run, made = _Run(*body), next(_numbers)
            _runs[made] = run
            self._send({"run": made, **run.begun()})
        elif rest and rest[0] == "end":
            self._send(_runs.pop(int(number)).judged(body["output"]))
        elif rest and rest[0] == "mcp":
            self._send(self._answer(_runs[int(number)], body) if "id" in body else None, mcp=True)

    def do_DELETE(self) -> None:
        self._send({})

    def _answer(self, run: _Run, request: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        match request["method"]:
            case "initialize":
                answer["result"] = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "agentdojo", "version": VERSION},
                }
            case "tools/list":
                answer["result"] = {"tools": run.listed()}
            case "tools/call":
                answer["result"] = run.call(request["params"]["name"], request["params"].get("arguments") or {})
            case _:
                answer["error"] = {"code": -32601, "message": "Method not found"}
        return answer

    def _send(self, answer: dict[str, Any] | None, *, mcp: bool = False) -> None:
        body = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(202 if answer is None else 200)
        if mcp:
            self.send_header("mcp-session-id", _SESSION)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Logs nothing."""


def main() -> None:
    """Serves until the standard input ends; prints the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
