"""Makes cases of incidents: the alert, what is expected of the finding, and the tools over the objects.

Decision: a finding is right where a supported claim blames the object whose change is the cause, and no harmless change
beside it; without a fault it must say so. The words of a cause are not compared, because no rule can judge prose.
"""

from datetime import datetime

from mcp.server import MCPServer

from tarsy.engine.ports import NotRead
from tarsy.evals.cassette import AlertRecord, Cassette, Header, Truth
from tarsy.evals.suite import SuiteCase, expectation_of
from tarsy.evidence.history.recorded import RecordedHistory
from tarsy.evidence.snapshot import Snapshot
from tarsy.kubernetes_tools.tools import tool_server
from tarsy.masking import Maskers, without_secrets_or_withheld
from tarsy.mcp.errors import OpenFailed
from tarsy.mcp.toolbox import McpToolboxes
from tarsy.plan.model import ChangesPlan, MaskingPlan, Plan, ServerPlan, Value
from tarsy.runtime.in_process.sample import PlannedCase
from tarsy_dev.incidents.corpus import Incident
from tarsy_dev.incidents.reader import IncidentReader

ALERT_TYPE = "WorkloadUnhealthy"
TOOLS = "kubernetes"
"""Name of the MCPServer that reads the objects; others have no tools."""

_WITHHELD = "[withheld: it could not be searched for secrets]"


class IncidentObjects:
    """Reads the objects of an incident for stages of kind Changes (`tarsy.engine.ports.ObjectReader`)."""

    def __init__(self, incident: Incident, maskers: Maskers) -> None:
        self._incident = incident
        self._mask = maskers.of(MaskingPlan())

    async def read(self, changes: ChangesPlan) -> Snapshot | NotRead:
        """Returns all objects of the incident."""
        return self._incident.snapshot()

    async def history(self, changes: ChangesPlan, since: datetime) -> RecordedHistory:
        """Returns nothing: an incident has no recorded changes of objects."""
        return RecordedHistory()

    def without_secrets(self, text: str) -> str:
        """Removes secrets from a text of an object; withholds one that cannot be searched."""
        return without_secrets_or_withheld(self._mask, text, "a text of an object", _WITHHELD).text


def case_of(incident: Incident) -> SuiteCase:
    """Returns the case of an incident, with an alert that names its target and nothing else."""
    target = incident.target
    alert = {"alertname": ALERT_TYPE, "namespace": incident.namespace, target.kind.lower(): target.name}
    data = "".join(f"{name}: {value}\n" for name, value in alert.items())
    header = Header(alert=AlertRecord(type=ALERT_TYPE, data=data), now=incident.read_at)
    return SuiteCase(incident.name, Cassette(header), expectation_of(truth_of(incident)))


def truth_of(incident: Incident) -> Truth:
    """Returns the known cause: the changed object, or the first object of the fault where no change is visible."""
    if not incident.faults:
        return Truth(verdict="NoFault")
    change = incident.change
    cause = f"{change.kind}/{change.name}" if change is not None else incident.faults[0].objects[0]
    return Truth(entities=(cause,), distractors=tuple(incident.distractors))


def planned(incident: Incident, case: SuiteCase, plan: Plan, maskers: Maskers) -> PlannedCase:
    """Returns a case that is measured over the objects of its incident.

    Args:
        incident: the incident.
        case: of the incident.
        plan: of the case.
        maskers: remove secrets from objects and results of tools.
    """

    def reach(server: ServerPlan) -> MCPServer:
        if server.name == TOOLS:
            return tool_server(IncidentReader(incident))
        return MCPServer(server.name, log_level="WARNING")

    tools = McpToolboxes(_no_value, mask=maskers.of(MaskingPlan()), mask_of=maskers.of, reach=reach)
    return PlannedCase(case, plan, IncidentObjects(incident, maskers), tools)


async def _no_value(value: Value) -> str:
    """Raises OpenFailed: a server in this process has no declared values."""
    raise OpenFailed("a server in this process has no declared values")
