"""Defines the context of a reconcile: the ports, settings and caches that all reconcile functions share.

A reconcile function takes one object and this context. The ports are grouped by the system they lead to, so that a new
port is one field here and one argument where the operator is composed. A port that is None is not used.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from tarsy.controllers.evals.git_cases import GitCases
from tarsy.controllers.evals.judge_queue import JudgeQueue
from tarsy.controllers.evals.scoring import Scoring
from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.controllers.readiness.provider_checks import ProviderChecks
from tarsy.controllers.readiness.server_checks import ServerChecks
from tarsy.controllers.readiness.serving import ServedCalls
from tarsy.controllers.runs.inputs import KeptText, no_text
from tarsy.controllers.runs.runbooks import Runbooks
from tarsy.controllers.schedules.times import FiringResult
from tarsy.controllers.tool_workloads.pod_rules import PodSettings
from tarsy.engine.ports import Models
from tarsy.kube.client import KubeClient
from tarsy.kube.events import Events
from tarsy.masking import Maskers, Setting
from tarsy.plan.model import CallLimits, ObjectRef, SecretKey
from tarsy.record.judging.shown_confidence import HIGH_FLOOR
from tarsy.record.run import InvestigationRecord
from tarsy.runbook.fetch import Fetcher
from tarsy.runtime.git_files import ReadGitFile
from tarsy.store.approvals import ApprovalStore
from tarsy.store.git_texts import GitTextStore
from tarsy.store.intake import Intake
from tarsy.store.judging.calibration import Verdicts
from tarsy.store.judging.evals import Evals
from tarsy.store.judging.judge_calls import JudgeCalls
from tarsy.store.judging.outcomes import Outcomes
from tarsy.store.judging.replays import Replays
from tarsy.store.judging.reviews import Reviews
from tarsy.store.judging.scores import Scores
from tarsy.store.questions import Questions
from tarsy.store.quotas import Quotas
from tarsy.store.reading.precedents import PrecedentSearch
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.runs.revisions import Revisions
from tarsy.store.tool_definitions import ToolDefinitions

RELIST_SECONDS = 300.0

SecretReader = Callable[[SecretKey], Awaitable[str]]
"""Reads one key of a Secret; raises SecretProblem."""

PublishLimits = Callable[[ObjectRef, CallLimits | None], Awaitable[None]]
"""Publishes the limits of an LLMProvider to all workers; raises StoreError."""

AtRest = dict[str, tuple[str, datetime | None]]
"""Runs at rest by uid: resourceVersion of the object, and when it is deleted; None: it goes with another object."""


@dataclass(frozen=True, slots=True)
class KubernetesPorts:
    """Leads to the Kubernetes API."""

    client: KubeClient
    events: Events
    read_secret: SecretReader


@dataclass(frozen=True, slots=True)
class StorePorts:
    """Leads to the record in Postgres."""

    runs: Runs
    reads: Reads
    questions: Questions
    intake: Intake | None = None
    """Incidents and the texts of alerts that came over HTTP; None: AlertRoutes and incidentKeys are ignored."""

    publish_limits: PublishLimits | None = None
    replays: Replays | None = None
    """Records of tool calls; None: replays are not accepted."""

    evals: Evals | None = None
    """Cases and results of evaluations; None: EvalSuites and EvalRuns are ignored."""

    judge_calls: JudgeCalls | None = None
    """Calls of the judges of suites; None: no judge is called."""

    precedents: PrecedentSearch | None = None
    """Finds earlier investigations; None: `spec.precedents` is ignored."""

    revisions: Revisions | None = None
    """Revisions of Chains; None: `spec.promotion` is ignored."""

    approvals: ApprovalStore | None = None
    """Calls that wait for people; None: nobody is asked."""

    definitions: ToolDefinitions | None = None
    """Definitions of tools of MCPServers with `spec.pin`; None: they are not stored."""

    quotas: Quotas | None = None
    """Spending of namespaces; None: InvestigationQuotas are ignored."""

    reviews: Reviews | None = None
    """Verdicts of people on findings; None: Reviews are ignored."""

    verdicts: Verdicts | None = None
    """The same by Chain; None: Chains tell no calibration."""

    scores: Scores | None = None
    """Scores of investigations; None: `spec.scoring` is ignored."""

    outcomes: Outcomes | None = None
    """Outcomes of findings; None: none are decided."""

    git_texts: GitTextStore | None = None
    """Texts of skills and runbooks in Git; None: none are read."""

    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Is set when the record of a run has changed."""


@dataclass(frozen=True, slots=True)
class ReadinessChecks:
    """Leads to the model providers and tool servers that objects name."""

    providers: ProviderChecks | None = None
    """Checks key and model of LLMProviders."""

    servers: ServerChecks | None = None
    """Checks the health and the tools of MCPServers."""


@dataclass(frozen=True, slots=True)
class OutboundPorts:
    """Leads to what objects name outside of the cluster."""

    checks: ReadinessChecks = field(default_factory=ReadinessChecks)
    fetcher: Fetcher | None = None
    """Fetches runbooks by URL; None: one with the usual limits."""

    read_git: ReadGitFile | None = None
    """Reads files from Git; None: none is read."""

    models: Models | None = None
    """Calls the judges of suites and of scores; None: no judge is called."""


DEFAULT_CHAIN_SECONDS = 300.0
"""Delay that lets a Chain applied with its Alert, or shortly after it, take precedence."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Configures all reconciles."""

    library_namespace: str
    namespaces: tuple[str, ...] = ()
    """Namespaces that the operator watches; empty: all."""

    pods: PodSettings | None = None
    """Settings of the pods of MCPServers; None: no workload is made."""

    git_hosts: tuple[str, ...] = ()
    """Hosts of Git repositories that the administrator allows."""

    calibration_floor: float = HIGH_FLOOR
    """Smallest lower end of the interval of right findings with confidence High."""

    runbook_hosts: tuple[str, ...] = ()
    """Hosts of runbooks that the administrator allows, beside those of each namespace's InvestigationDefaults."""

    require_author: bool = False
    """Whether an object without a stamped author is refused."""

    default_chain_seconds: float = DEFAULT_CHAIN_SECONDS
    """Age in seconds from which the default chain takes an Alert that no chain claims."""

    relist_seconds: float = RELIST_SECONDS
    """Seconds between two relists, which find events that the watch missed."""


@dataclass(frozen=True, slots=True)
class ReconcileContext:
    """Carries what a reconcile needs beside its object."""

    cache: Cache
    kubernetes: KubernetesPorts
    store: StorePorts
    settings: ControllerSettings
    runbooks: Runbooks
    git_cases: GitCases
    judges: JudgeQueue
    publish_again: Callable[[InvestigationRecord], None]
    """Asks the publisher to write the status of a run once more."""

    mask: Callable[[str], str]
    """Masks a text where the namespace sets no alertMasking."""

    scoring: Scoring | None = None
    """Scores investigations; None: nothing does."""

    mask_of: Callable[[Setting], Callable[[str], str]] = field(default_factory=lambda: Maskers().of)
    """Builds the masking function of a namespace's alertMasking."""

    checks: ReadinessChecks = field(default_factory=ReadinessChecks)
    served: ServedCalls | None = None
    """The last model calls of each LLMProvider; None: LLMProviders get no condition `Serving`."""

    at_rest: AtRest = field(default_factory=dict)
    """Finished runs that nothing is left to do for; their records are not read again until the object changes."""

    noted_tools: dict[str, str] = field(default_factory=dict)
    """Hash of the tool list whose definitions this process has stored, by uid of the MCPServer."""

    quota_written: dict[str, float] = field(default_factory=dict)
    """Time (`time.monotonic`) of the last write of a status, by uid of the InvestigationQuota."""

    shown_high: dict[Key, str] = field(default_factory=dict)
    """The confidence High as the statuses of the runs of a Chain show it, by Chain (`readiness/calibration.py`)."""

    note_firing: Callable[[FiringResult], None] = lambda _: None
    """Counts what became of a time of an AlertSchedule."""

    note_default: Callable[[], None] = lambda: None
    """Counts an Alert that the default chain of its namespace took."""

    acting: set[str] = field(default_factory=set)
    """The uids of runs that this controller made a Secret for (`tarsy.controllers.runs.run_secret`)."""

    @property
    def kept_text(self) -> KeptText:
        """Reads the texts of alerts that came over HTTP."""
        return self.store.intake.body if self.store.intake is not None else no_text
