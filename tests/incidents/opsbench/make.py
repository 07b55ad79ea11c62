"""Makes cases of our own incidents in that form: `python -m tests.incidents.opsbench.make DIR [NAME ...]`.

The texts are those of a real kubectl, asked of the embedded API, so the parser is tested on them and not on what its
author believes that kubectl prints.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # tests import each other from there, as under pytest

from apis import find_kubectl
from incidents.on_api import serve
from tarsy_dev.incidents.corpus import FOLDER, Incident, load_incident
from tarsy_dev.opsbench.cases import ANSWERS, TRUTH
from tarsy_dev.opsbench.objects import KINDS

_SECONDS = 60.0


def case_of(incident: Incident, kubectl: Path) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Returns the recorded answers and the truth of an incident of the present."""
    answers: dict[str, object] = {"collection_timestamp": incident.read_at.replace(tzinfo=None).isoformat()}
    there = {one["kind"] for one in incident.objects}
    with serve(incident) as api:

        def asked(*arguments: str) -> str:
            command = [str(kubectl), f"--kubeconfig={api.kubeconfig}", f"--namespace={incident.namespace}", *arguments]
            return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True).stdout

        for resource, kind in KINDS.items():
            if kind not in there:
                continue
            of_kind = {"resource_type": resource, "namespace": incident.namespace}
            answers[_key("GetResources", {**of_kind, "name": ""})] = asked("get", resource)
            for name in asked("get", resource, "--output=name").split():
                bare = name.partition("/")[2]
                answers[_key("DescribeResource", {**of_kind, "name": bare})] = asked("describe", resource, bare)
    result = {"fault_taxonomy": "Own_Fault", "fault_object": f"app/{incident.target.name}", "root_cause": incident.name}
    return answers, {"namespace": incident.namespace, "query": incident.name, "result": result}


def _key(tool: str, arguments: Mapping[str, str]) -> str:
    return f"{tool}:{json.dumps(arguments, separators=(',', ':'))}"


def main(arguments: Sequence[str]) -> int:
    """Writes the cases of incidents by name, or of all; returns 2 where there is no kubectl or no folder is given."""
    kubectl = find_kubectl()
    if kubectl is None or not arguments:
        print("usage: make DIR [NAME ...]; kubectl must be on this machine", file=sys.stderr)
        return 2
    names = arguments[1:] or sorted(path.stem for path in (FOLDER / "cases").glob("*.yaml"))
    for name in names:
        incident = load_incident(FOLDER / "cases" / f"{name}.yaml", datetime.now(UTC).replace(microsecond=0))
        folder = Path(arguments[0]) / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, document in zip((ANSWERS, TRUTH), case_of(incident, kubectl), strict=True):
            (folder / file).write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
