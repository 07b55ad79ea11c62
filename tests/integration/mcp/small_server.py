"""A tool server of the handshake era in the standard library alone: it starts in a moment and behaves as badly as told.

Run as `python small_server.py [MODE]`; modes: none, `mute` (never answers), `exit` (ends at once), `stubborn` (does not
end when its input does), `noisy` (writes lines that are not JSON-RPC).
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NUMBER = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
TOOLS = {
    "echo": TEXT,
    "wait": NUMBER,
    "big": NUMBER,
    "pid": NOTHING,
    "environment": NOTHING,
    "die": NOTHING,
    "count_then_die": NOTHING,
    "spawn": NOTHING,
    "meta": NOTHING,
    "picture": NOTHING,
    "structured": NOTHING,
    "secret": NOTHING,
    "rpc_error": NOTHING,
    "not_a_result": NOTHING,
}
LOCK = threading.Lock()


def send(message: dict[str, Any]) -> None:
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def content(name: str, arguments: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    text = ""
    if name == "echo":
        text = arguments["text"]
    elif name == "wait":
        if "WAIT_FILE" in os.environ:
            Path(os.environ["WAIT_FILE"]).touch()
        time.sleep(arguments["n"])
        text = "waited"
    elif name == "big":
        text = "x" * int(arguments["n"])
    elif name == "pid":
        text = str(os.getpid())
    elif name == "environment":
        started_with = Path("/proc/self/environ").read_text(encoding="utf-8")
        text = json.dumps(dict(part.split("=", 1) for part in started_with.split("\0") if part))
    elif name in {"die", "count_then_die"}:
        if name == "count_then_die":
            with Path(os.environ["COUNT_FILE"]).open("a", encoding="utf-8") as file:
                file.write("called\n")
        print("fatal: the token is", os.environ.get("TOKEN"), file=sys.stderr, flush=True)
        os._exit(3)
    elif name == "spawn":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        text = str(child.pid)
    elif name == "meta":
        text = json.dumps(params.get("_meta"))
    elif name == "secret":
        text = f"my token is {os.environ['TOKEN']}"
    elif name == "structured":
        return {"content": [], "structuredContent": {"pods": 3}}
    elif name == "picture":
        return {
            "content": [
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "file:///log", "text": "line one"}},
            ]
        }
    return {"content": [{"type": "text", "text": text}]}


def describe(name: str) -> str:
    """What `echo` does is what the file in DESCRIPTION_FILE says, if there is one: it can change between two starts."""
    path = Path(os.environ.get("DESCRIPTION_FILE", ""))
    return path.read_text(encoding="utf-8") if name == "echo" and path.is_file() else f"Does {name}."


def call(request: dict[str, Any]) -> None:
    params = request["params"]
    if params["name"] == "rpc_error":
        send({"id": request["id"], "error": {"code": -32603, "message": "no luck"}})
    elif params["name"] == "not_a_result":
        send({"id": request["id"], "result": {"content": "text"}})
    else:
        send({"id": request["id"], "result": content(params["name"], params.get("arguments") or {}, params)})


def answer(request: dict[str, Any]) -> None:
    match request.get("method"):
        case "initialize":
            info = {"name": "small", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
            send({"id": request["id"], "result": {**result, "instructions": "Be brief."}})
        case "tools/list":
            names = sorted(TOOLS, reverse=True)
            start = int((request.get("params") or {}).get("cursor") or 0)
            page = [{"name": n, "description": describe(n), "inputSchema": TOOLS[n]} for n in names[start : start + 5]]
            more = {"nextCursor": str(start + 5)} if start + 5 < len(names) else {}
            send({"id": request["id"], "result": {"tools": page, **more}})
        case "tools/call":
            threading.Thread(target=call, args=(request,), daemon=True).start()
        case _ if "id" in request:
            send({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})


def main() -> None:
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    if mode == "exit":
        print("fatal: no configuration, token", os.environ.get("TOKEN"), file=sys.stderr, flush=True)
        sys.exit(2)
    if mode == "mute":
        print("loading, slowly", file=sys.stderr, flush=True)
        time.sleep(600)
    if mode == "noisy":
        print("Welcome!\n\n{", flush=True)
    for line in sys.stdin:
        answer(json.loads(line))
    if mode == "stubborn":
        time.sleep(600)


if __name__ == "__main__":
    main()
