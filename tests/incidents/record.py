"""Records what a real tool server shows of each incident: `python -m tests.incidents.record [NAME ...]`.

Writes `answers/NAME.json`: the first calls of somebody who looks into the incident, with the server's answers. Each
incident is loaded as one of the present, so that the ages in the answers are right; then its times are moved to those
of the corpus, so that a second recording changes nothing but a second here and there.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests import each other from there, as under pytest

from e2e.kubernetes_mcp import VERSION, NotToBeHad
from incidents.on_api import ToolAnswer, serve, tool_answers, tool_server
from tarsy_dev.incidents.corpus import FOLDER, load_incident

ANSWERS = FOLDER / "answers"


def recorded(name: str) -> Sequence[ToolAnswer]:
    """Returns the recorded answers of an incident."""
    document = json.loads((ANSWERS / f"{name}.json").read_text())
    return [ToolAnswer(**one) for one in document["calls"]]


async def record(name: str) -> Sequence[ToolAnswer]:
    """Returns what the tool server answers now.

    Raises:
        NotToBeHad: it is not on this machine and cannot be fetched.
    """
    incident = load_incident(FOLDER / "cases" / f"{name}.yaml", datetime.now(UTC).replace(microsecond=0))
    with serve(incident) as api:
        async with tool_server(api.kubeconfig) as client:
            return await tool_answers(client, incident)


async def _record_all(names: Sequence[str]) -> None:
    ANSWERS.mkdir(exist_ok=True)
    for name in names:
        calls = [asdict(one) for one in await record(name)]
        document = {"incident": name, "server": f"kubernetes-mcp-server {VERSION}", "calls": calls}
        (ANSWERS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
        print(f"{name}: {sum(len(one['text']) for one in calls):,} characters")


def main(names: Sequence[str]) -> int:
    """Records the incidents of these names, or all; ends 1 with a sentence where there is no tool server."""
    try:
        asyncio.run(_record_all(names or [path.stem for path in sorted((FOLDER / "cases").glob("*.yaml"))]))
    except NotToBeHad as reason:
        print(reason, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
