"""Every metric of the product: its name, what it counts, its labels and all values that these can have.

Names and buckets follow the reference (section 1.24), sessions being investigations here. Decision: a label's values
are declared, never what people wrote: no namespace, chain, provider, server or user, so neither a secret nor an
endless number of series can come of an alert. What is not declared is counted as `other` where that is a value, and is
an error elsewhere. This room is the lowest, so the words of other rooms stand here again; a test holds them together.
"""

from dataclasses import dataclass
from typing import Final, Literal

OTHER: Final = "other"


@dataclass(frozen=True, slots=True)
class Label:
    """A label and its values; None: known when a process is put together (the templates of its own routes)."""

    name: str
    values: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One metric; `buckets` are the upper bounds of a histogram, in the unit that the name ends with.

    One that is `asked` for is kept elsewhere (a pool, a cache, Postgres) and read when somebody scrapes. What is
    `shared` every process says the same of: the maximum of them counts, not their sum.
    """

    name: str
    type: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()
    asked: bool = False
    shared: bool = False


def _counter(name: str, told: str, *labels: Label, asked: bool = False) -> Metric:
    return Metric(f"tarsy_{name}_total", "counter", told, labels, asked=asked)


def _asked(name: str, told: str, *labels: Label) -> Metric:
    return Metric(f"tarsy_{name}", "gauge", told, labels, asked=True)


def _shared(name: str, told: str, *labels: Label) -> Metric:
    return Metric(f"tarsy_{name}", "gauge", told, labels, asked=True, shared=True)


def _seconds(name: str, told: str, buckets: tuple[float, ...], *labels: Label) -> Metric:
    return Metric(f"tarsy_{name}_seconds", "histogram", told, labels, buckets)


_RUN_SECONDS = (30.0, 60.0, 120.0, 180.0, 300.0, 600.0, 900.0, 1200.0, 1800.0, 2400.0)
_WAIT_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
_MODEL_SECONDS = (1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 90.0, 120.0, 180.0)
_TOOL_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_HTTP_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

KIND = Label("kind", ("investigation", "question"))
ENDS = Label("state", ("completed", "failed", "cancelled", "timed_out"))
_OPEN = Label("state", ("queued", "running"))
PROVIDER_TYPE = Label("provider_type", ("openai", "google", "vertexai", "anthropic", "xai", OTHER))
TRANSPORT = Label("transport", ("stdio", "http", "sse", OTHER))
STRATEGY = Label(
    "strategy",
    ("react", "native-thinking", "langchain", "synthesis", "synthesis-native-thinking", "single-call", OTHER),
)
STAGE_KIND = Label("kind", ("investigation", "synthesis", "executive_summary", "chat"))
CALL_KIND = Label(
    "kind",
    (
        "iteration",
        "forced_conclusion",
        "synthesis",
        "executive_summary",
        "finding_repair",
        "summarization",
        OTHER,
    ),
)
MODEL_ERROR = Label(
    "code",
    (
        "CredentialsRejected",
        "CredentialsMissing",
        "InvalidRequest",
        "ModelNotFound",
        "ContextTooLong",
        "ContentFiltered",
        "RateLimited",
        "ModelServerError",
        "ModelUnreachable",
        "ModelTimeout",
        "IterationTimeout",
        "ServerSilent",
        "FirstTokenTimeout",
        "StreamStalled",
        "ConclusionTimeout",
        "EmptyAnswer",
        "PartialStream",
        OTHER,
    ),
)
TOKENS = Label("kind", ("input", "output", "thinking", "cached"))
OUTCOME = Label("outcome", ("completed", "failed"))
TOOL_OUTCOME = Label("outcome", ("completed", "failed", "interrupted"))
_TOOL_ERROR = Label("outcome", ("failed", "interrupted"))
CONFIDENCE = Label("confidence", ("High", "Medium", "Low", "Inconclusive", "none"))
CITATION = Label("outcome", ("held", "failed"))
LIMIT = Label("limit", ("Tokens", "Cost", "ToolCalls", "Minutes"))
CLAIM = Label("attempt", ("first", "resumed"))
FATE = Label("fate", ("investigated", "folded", "resolved", "rejected"))
TOLD_BY = Label("kind", ("slack", "webhook"))
TOLD = Label("outcome", ("sent", "failed", "given_up"))
REFUSAL = Label("reason", ("unauthenticated", "forbidden", "unavailable", "failed"))
METHOD = Label("method", ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", OTHER))
STATUS = Label("status", ("1xx", "2xx", "3xx", "4xx", "5xx", "left"))
ROUTE = Label("route", None)
MASKED = Label("what", ("tool_results", "model_output", "alert_data"))
POOL = Label("pool", ("runs", "http"))
CONNECTION = Label("state", ("used", "idle"))
CONFIGURATION = Label("kind", ("Agent", "AlertRoute", "Chain", "InvestigationDefaults", "LLMProvider", "MCPServer"))
CONDITION = Label("condition", ("Ready", "Available", "NotificationsReady"))
CONDITION_STATUS = Label("status", ("True", "False", "Unknown"))

ACCEPTED = _counter("investigations_submitted", "Investigations, or questions about them, that were accepted.", KIND)
TERMINAL = _counter("investigations_terminal", "Investigations, or questions about them, that ended.", KIND, ENDS)
DURATION = _seconds(
    "investigation_duration",
    "From the first attempt's start of a run to its end, where a worker ended it.",
    _RUN_SECONDS,
    KIND,
)
WAIT = _seconds("investigation_wait", "From acceptance to the first attempt's start.", _WAIT_SECONDS, KIND)
CLAIMED = _counter("investigations_claimed", "Runs that a worker took; `resumed`: not for the first time.", KIND, CLAIM)
SWEPT = _counter("swept_investigations", "Runs that the sweep ended: nobody ran them and their time was over.")
QUEUED = _shared("investigations_queued", "Investigations that wait for a worker.")
RUNNING = _shared("investigations_running", "Investigations that were begun and have not ended.")
OLDEST_QUEUED = _shared("investigations_queued_oldest_seconds", "How long the oldest of those that wait has waited.")
QUESTIONS = _shared("questions_open", "Questions that are not answered yet.", _OPEN)

WORKERS = _shared("workers", "Workers whose lease is alive.")
PLACES = _asked("worker_places", "Investigations that this process may run at once.")
HELD = _asked("worker_runs", "Runs that this process holds now.", KIND)
LEASES_LOST = _counter("lease_losses", "Runs that an attempt gave up because its lease was, or may be, another's.")
WORKERS_LOST = _counter("worker_losses", "Times a worker of this process found that it had counted as dead.")
FENCED = _counter("fence_refusals", "Writes of a run that the record refused, because the attempt was no more.")
LEFT = _counter("runs_left", "Runs that an attempt left to be resumed, because Postgres was away or refused.")

STAGES = _counter("stages", "Stages that ended.", STAGE_KIND, ENDS)
EXECUTIONS = _counter("agent_executions", "Executions of agents that ended.", STRATEGY, ENDS)

MODEL_CALLS = _counter("llm_calls", "Model calls that came back.", PROVIDER_TYPE, CALL_KIND, OUTCOME)
MODEL_ERRORS = _counter(
    "llm_errors", "Model calls that failed, retries within a call not counted.", PROVIDER_TYPE, MODEL_ERROR
)
MODEL_SECONDS = _seconds("llm_duration", "How long model calls took.", _MODEL_SECONDS, PROVIDER_TYPE)
MODEL_TOKENS = _counter(
    "llm_tokens", "Tokens as providers report them; thinking is part of output, cached of input.", PROVIDER_TYPE, TOKENS
)
MODEL_COST = _counter("llm_cost_usd", "US dollars of the calls whose price is known.", PROVIDER_TYPE)
UNPRICED = _counter("llm_unpriced_calls", "Model calls whose usage or rates are not known.", PROVIDER_TYPE)
FALLBACKS = _counter("llm_fallbacks", "Times an agent went on with its next provider, by why.", MODEL_ERROR)
LIMIT_WAIT = _seconds(
    "llm_limit_wait", "How long model calls that had to waited for their turn at their provider.", _WAIT_SECONDS
)

TOOL_CALLS = _counter("mcp_calls", "Tool calls that a server was asked for.", TRANSPORT, TOOL_OUTCOME)
TOOL_ERRORS = _counter("mcp_errors", "Tool calls that failed, or whose outcome is not known.", TRANSPORT, _TOOL_ERROR)
TOOL_SECONDS = _seconds("mcp_duration", "How long tool calls took.", _TOOL_SECONDS, TRANSPORT)
REFUSED_TOOL_CALLS = _counter("refused_tool_calls", "Tool calls that were not made: a policy, or a tool that changed.")
GUARD_ANSWERS = _counter("guard_answers", "Repeated tool calls that were answered from the run's own record.")
GUARD_STOPS = _counter("guard_stops", "Agents that had to conclude because they repeated themselves.")
BUDGET_STOPS = _counter("budget_stops", "Runs that had to conclude because a limit of their budget was reached.", LIMIT)
DEGRADED = _counter("evidence_degraded", "Attempts of runs that went on without a tool server.")
FINDINGS = _counter("findings", "Investigations that ended with a finding, by its confidence.", CONFIDENCE)
CITATIONS = _counter("evidence_citations", "Citations of findings, by whether the record holds them.", CITATION)
MASKING_FAILED = _counter("masking_failures", "Texts that could not be searched for secrets.", MASKED)

INTAKE = _counter("intake_notifications", "Answers to notifications, by fate.", FATE)
UNROUTED = _counter("intake_unrouted_notifications", "Notifications that no AlertRoute takes.")
QUEUE_FULL = _counter("intake_queue_full", "Notifications answered with 503 because too many investigations wait.")
OWED = _shared("intake_alerts_owed", "Alerts that were promised to a sender and are not made yet.")
OLDEST_OWED = _shared("intake_alerts_owed_oldest_seconds", "How long the oldest of them has been owed.")

NOTIFICATIONS = _counter(
    "notifications",
    "Tries to tell somebody of a run: `failed` ones are made again, after `given_up` nobody tries any more.",
    TOLD_BY,
    TOLD,
)
NOTICES_OWED = _shared("notifications_owed", "What people are still to be told of runs.")
OLDEST_NOTICE_OWED = _shared("notifications_owed_oldest_seconds", "How long the oldest of them has been owed.")

ACTIVE = _asked("controller_active", "1 where this process holds the Lease of the controller.")
OBJECTS = _shared(
    "configuration_objects",
    "Configuration objects by condition, as the watch knows them.",
    CONFIGURATION,
    CONDITION,
    CONDITION_STATUS,
)
UNPUBLISHED = _shared("projection_pending", "Runs whose object's status does not tell their latest step yet.")
PROJECTION_LAG = _shared(
    "projection_lag_seconds", "How long the oldest end of a run has not been in its object's status."
)

RECORD_UP = _asked("record_up", "1 where Postgres answered this process in time, for the gauges that come from it.")
POOL_WAITS = _counter("postgres_pool_waits", "Calls that waited long for a connection to Postgres.", POOL, asked=True)
SLOW = _counter("postgres_slow_calls", "Calls that took Postgres long.", POOL, asked=True)
CONNECTIONS = _asked("postgres_connections", "Connections to Postgres of this process.", POOL, CONNECTION)

HTTP_REQUESTS = _counter("http_requests", "Requests that were answered.", ROUTE, METHOD, STATUS)
HTTP_SECONDS = _seconds(
    "http_duration", "How long answers took; those that stream count to their end.", _HTTP_SECONDS, ROUTE
)
HTTP_REFUSALS = _counter("http_refusals", "Requests refused with 401, 403, 503, or that ended with a 500.", REFUSAL)
STREAMS = _asked("ws_connections_active", "Connections that follow what happens, by WebSocket or by SSE.")

ALL: Final[tuple[Metric, ...]] = tuple(found for found in tuple(globals().values()) if isinstance(found, Metric))
"""All of them, in the order of this file."""
