"""Runs the scripted model as a process of its own: `python -m tarsy_dev.model --script FILE`.

The key comes by the name of an environment variable, never as an argument, which every user of the machine could read.
"""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from tarsy_dev.model.script import ScriptError, demo_script, load_script
from tarsy_dev.model.server import ScriptedModel


def main() -> int:
    """Serves until SIGTERM or SIGINT; prints the base URL on one line when it is ready."""
    parser = argparse.ArgumentParser(prog="python -m tarsy_dev.model", description="A scripted model server.")
    parser.add_argument("--script", type=Path, help="YAML file with the answers (default: the demo's)")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: a free one)")
    parser.add_argument("--key-env", metavar="NAME", help="environment variable that holds the API key to ask for")
    options = parser.parse_args()
    key = os.environ.get(options.key_env) if options.key_env else None
    if options.key_env and not key:
        parser.error(f"--key-env: the environment variable {options.key_env} is not set")
    try:
        script = load_script(options.script) if options.script else demo_script()
        asyncio.run(_serve(ScriptedModel(script, api_key=key, port=options.port)))
    except (ScriptError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


async def _serve(model: ScriptedModel) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with model:
        print(model.base_url, flush=True)
        await stopped.wait()


if __name__ == "__main__":
    sys.exit(main())
