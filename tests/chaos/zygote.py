"""Starts `tarsy` processes by fork, out of one that has imported everything: that costs seconds, chaos starts many.

Each child is a session of its own with connections of its own, writes to its own log, and is killed when this process
ends. Orders are JSON objects, one a line (`arguments`, `environment`, `log`, `before`), each answered with a pid; the
end of the input ends this. `before` is Python that the child runs first: how a test takes a part of the product out.
"""

import importlib
import json
import os
import random
import signal
import sys
import traceback
from typing import Any

from tarsy.cli.main import main
from tarsy_dev.apiserver.process import end_with_parent

NEEDED = (
    "tarsy.app.operator",
    "tarsy.app.worker",
    "tarsy.llm.google_native.provider",
    "tarsy.llm.openai_native.client",
)


def become(order: dict[str, Any]) -> None:
    """Becomes the process that is asked for."""
    os.setsid()
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    random.seed()
    os.chdir("/")
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = ["tarsy", *order["arguments"]]
    exec(order["before"])  # noqa: S102 (what a test of this checkout says)
    main()


def serve() -> None:
    """Forks as it is told, until there is nobody to tell it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who is dead is gone at once
    end_with_zygote = end_with_parent(signal.SIGKILL)
    for module in NEEDED:
        importlib.import_module(module)
    print("ready", flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                if end_with_zygote is not None:
                    end_with_zygote()
                become(json.loads(line))
            except SystemExit as ended:
                os._exit(ended.code if isinstance(ended.code, int) else 0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(os.EX_SOFTWARE)
        print(pid, flush=True)


if __name__ == "__main__":
    serve()
