"""A tool server in the standard library alone, as good or bad as its tools' names say; every call is counted.

Run as `python tool_server.py [exit]`. Each call is one line of the file in COUNT_FILE, written before anything else
happens: the tool, and the idempotency key. Tools: `look` and `write` succeed, `refuse` answers with an error, `hang`
never answers, `wait` answers when the file in GATE_FILE exists, `die` ends the server. A number is answered with as
many lines.

The file in KILL_FILE holds a moment at which the server kills itself, once: `start`, `open` (its tools are asked for),
`call` (one was counted), `idle` (one was answered), `close` (its input has ended). The file in GONE_FILE then says that
it did; where that is set, a server that was killed does not start again.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

SCHEMA = {"type": "object", "properties": {"what": {"type": "string"}}}
TOOLS = ("look", "write", "refuse", "hang", "wait", "die")
KEY = "tarsy.dev/idempotency-key"
LOCK = threading.Lock()


def moment(name: str) -> None:
    """Kills the server if this is where it shall be killed; it has not said anything more by then."""
    kill, gone = (Path(os.environ.get(variable, "/nowhere/at/all")) for variable in ("KILL_FILE", "GONE_FILE"))
    if name == "start" and gone.exists():
        os.kill(os.getpid(), signal.SIGKILL)
    if kill.exists() and kill.read_text(encoding="utf-8") == name:
        kill.unlink()
        if gone.parent.exists():
            gone.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def send(message: dict[str, Any]) -> None:
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def count(params: dict[str, Any]) -> None:
    if path := os.environ.get("COUNT_FILE"):
        with LOCK, Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{params['name']} {(params.get('_meta') or {}).get(KEY, '')}\n")


def call(request: dict[str, Any]) -> None:
    params = request["params"]
    count(params)
    moment("call")
    name, what = params["name"], (params.get("arguments") or {}).get("what", "")
    if name == "die":
        os._exit(3)
    if name == "hang":
        time.sleep(3600)
    if name == "wait":
        while not Path(os.environ["GATE_FILE"]).exists():
            time.sleep(0.02)
    saw = "\n".join(f"line {number}" for number in range(int(what))) if what.isdigit() else what
    text = f"{name} found nothing under {what}" if name == "refuse" else f"{name} saw {saw}"
    result = {"content": [{"type": "text", "text": text}], "isError": name == "refuse"}
    send({"id": request["id"], "result": result})
    moment("idle")


def answer(request: dict[str, Any]) -> None:
    match request.get("method"):
        case "initialize":
            info = {"name": "tools", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
            send({"id": request["id"], "result": result})
        case "tools/list":
            moment("open")
            tools = [{"name": name, "description": f"To {name}.", "inputSchema": SCHEMA} for name in TOOLS]
            send({"id": request["id"], "result": {"tools": tools}})
        case "tools/call":
            threading.Thread(target=call, args=(request,), daemon=True).start()
        case _ if "id" in request:
            send({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})


def main() -> None:
    if sys.argv[1:] == ["exit"]:
        print("fatal: no configuration", file=sys.stderr, flush=True)
        sys.exit(2)
    moment("start")
    for line in sys.stdin:
        answer(json.loads(line))
    moment("close")


if __name__ == "__main__":
    main()
