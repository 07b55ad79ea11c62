"""Starts `tarsy` processes by fork, out of one that has imported everything: an import costs two seconds of a core.

Each child is a session of its own with connections of its own, writes to its own log, and is killed when this process
ends. Orders are JSON objects, one a line (`program`, `arguments`, `environment`, `stdin`, `log`, `errors`, `before`,
`ended`), each answered with a pid; the end of the input ends this. `program` is a module with a `main`. `before` is
Python that the child runs first: how a test takes a part of the product out. `ended` is a file that gets the child's
exit status.
"""

import gc
import importlib
import json
import os
import random
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from tarsy.masking import default_masker
from tarsy_dev.apiserver.process import end_with_parent

NEEDED = (
    "tarsy.app.operator",
    "tarsy.app.worker",
    "tarsy.cli.main",
    "tarsy.cli.plugin",
    "tarsy.client.opening",
    "tarsy.llm.google_native.provider",
    "tarsy.llm.openai_native.client",
)
CHILD_ENDED = {signal.SIGCHLD}
reports: dict[int, Path] = {}


def become(order: dict[str, Any]) -> None:
    """Becomes the process that is asked for."""
    os.setsid()
    os.dup2(os.open(order["stdin"], os.O_RDONLY), 0)
    for number, file in ((1, order["log"]), (2, order["errors"])):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), number)
    random.seed()
    os.chdir("/")
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = ["tarsy", *order["arguments"]]
    exec(order["before"])  # noqa: S102 (what a test of this checkout says)
    importlib.import_module(order["program"]).main()


def reap(*_: object) -> None:
    """Writes the exit status of each child that has ended to its file."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        report = reports.pop(pid)
        part = report.with_suffix(".part")
        part.write_text(str(os.waitstatus_to_exitcode(status)))
        part.rename(report)


def serve() -> None:
    """Forks until the input ends."""
    signal.signal(signal.SIGCHLD, reap)
    end_with_zygote = end_with_parent(signal.SIGKILL)
    for module in NEEDED:
        importlib.import_module(module)
    default_masker()
    gc.collect()
    gc.freeze()  # no collection in a child visits, and so copies, what was imported
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        signal.pthread_sigmask(signal.SIG_BLOCK, CHILD_ENDED)  # until `reports` knows the child
        pid = os.fork()
        if pid == 0:
            try:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, CHILD_ENDED)
                if end_with_zygote is not None:
                    end_with_zygote()
                become(order)
            except SystemExit as ended:
                sys.stdout.flush()
                os._exit(ended.code if isinstance(ended.code, int) else 0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(os.EX_SOFTWARE)
        reports[pid] = Path(order["ended"])
        signal.pthread_sigmask(signal.SIG_UNBLOCK, CHILD_ENDED)
        print(pid, flush=True)


if __name__ == "__main__":
    serve()
