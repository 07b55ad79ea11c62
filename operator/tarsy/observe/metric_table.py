"""Declares every metric of the product: name, help, labels and all values of the labels.

Decision: the values of labels are declared, and never come from users: no namespace, chain, provider, server or user
name, so an alert can cause neither a leaked secret nor an unbounded number of series. Undeclared values count as
`other` if the label has it, and are an error otherwise. This package imports no other one, so values of other packages
are repeated here; a test compares them.
"""

from dataclasses import dataclass
from typing import Final, Literal

OTHER: Final = "other"


@dataclass(frozen=True, slots=True)
class Label:
    """A label and its values; None: declared at startup (the templates of routes)."""

    name: str
    values: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """A metric.

    `buckets` are the upper bounds of a histogram, in the unit that ends its name. An `asked` metric is read from its
    source (a pool, a cache, Postgres) at each scrape. `aggregate` combines the values of several processes: a sum, or
    the maximum of a metric that has the same value in every process, or the minimum of one that is 0 where a process
    has a problem.
    """

    name: str
    type: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()
    asked: bool = False
    aggregate: Literal["sum", "max", "min"] = "sum"


def _counter(name: str, told: str, *labels: Label, asked: bool = False) -> Metric:
    return Metric(f"tarsy_{name}_total", "counter", told, labels, asked=asked)


def _asked(name: str, told: str, *labels: Label) -> Metric:
    return Metric(f"tarsy_{name}", "gauge", told, labels, asked=True)


def _shared(name: str, told: str, *labels: Label) -> Metric:
    return Metric(f"tarsy_{name}", "gauge", told, labels, asked=True, aggregate="max")


def _seconds(name: str, told: str, buckets: tuple[float, ...], *labels: Label) -> Metric:
    return Metric(f"tarsy_{name}_seconds", "histogram", told, labels, buckets)


_RUN_SECONDS = (30.0, 60.0, 120.0, 180.0, 300.0, 600.0, 900.0, 1200.0, 1800.0, 2400.0)
_WAIT_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
_PARKED_SECONDS = (60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0, 86400.0)
_MODEL_SECONDS = (1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 90.0, 120.0, 180.0)
_TOOL_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_HTTP_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

KIND = Label("kind", ("investigation", "question"))
ENDS = Label("state", ("completed", "failed", "cancelled", "timed_out"))
_OPEN = Label("state", ("queued", "running"))
WAIT_REASON = Label("reason", ("Approval", "ProviderLimit", "Quota"))
PROVIDER_TYPE = Label("provider_type", ("openai", "google", "vertexai", "anthropic", "xai", OTHER))
TRANSPORT = Label("transport", ("stdio", "http", "sse", OTHER))
STRATEGY = Label(
    "strategy",
    ("react", "native-thinking", "langchain", "synthesis", "synthesis-native-thinking", "single-call", OTHER),
)
STAGE_KIND = Label("kind", ("investigation", "escalation", "synthesis", "executive_summary", "chat", "action"))
ACTED = Label("acted", ("yes", "no"))
MODEL_WORD = Label("model_says", ("Yes", "No", "Unknown"))
CALL_KIND = Label(
    "kind",
    (
        "iteration",
        "forced_conclusion",
        "synthesis",
        "executive_summary",
        "finding_repair",
        "summarization",
        "simulation",
        "extraction",
        "checklist",
        "score",
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
SEARCHED = Label("outcome", ("found", "none", "failed"))
ENDING = Label("ending", ("Confirmed", "Partly", "Unknown", "Refuted"))
SCORE_RESULT = Label("result", ("completed", "failed", "refused", "expired"))
FINDING_VERDICT = Label("verdict", ("Right", "Partly", "Wrong"))
INCIDENT_OUTCOME = Label("outcome", ("Settled", "ChangedAndSettled", "Recurred"))
CITATION = Label("outcome", ("held", "failed"))
LIMIT = Label("limit", ("Tokens", "Cost", "ToolCalls", "Minutes", "Quota"))
DISPATCH = Label("result", ("completed", "failed", "cancelled", "timed_out", "refused"))
ESCALATION = Label("outcome", ("escalated", "unused", "over_budget", "not_evaluated"))
SKILL_LOAD = Label("outcome", ("completed", "failed"))
CLAIM = Label("attempt", ("first", "resumed"))
FATE = Label("fate", ("investigated", "folded", "resolved", "rejected"))
TOLD_BY = Label("kind", ("slack", "webhook", "request"))
TOLD = Label("outcome", ("sent", "failed", "given_up"))
SLACK_OUTCOME = Label("outcome", ("answered", "refused", "unknown_user", "too_many", "given_up", "silent"))
REFUSAL = Label("reason", ("unauthenticated", "forbidden", "unavailable", "failed"))
METHOD = Label("method", ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", OTHER))
STATUS = Label("status", ("1xx", "2xx", "3xx", "4xx", "5xx", "left"))
ROUTE = Label("route", None)
MASKED = Label("what", ("tool_results", "model_output", "alert_data", "history"))
POOL = Label("pool", ("runs", "http"))
CONNECTION = Label("state", ("used", "idle"))
CHANGE_TYPE = Label(
    "type",
    ("Rollout", "Scale", "Config", "Network", "Quota", "Node", "Storage", "Restart", "GitOps", "Delete"),
)
WATCH_STATE = Label("state", ("Watching", "Forbidden", "NotServed", "Unavailable"))
CONFIGURATION = Label(
    "kind",
    (
        "Agent",
        "AlertRoute",
        "AlertSchedule",
        "Chain",
        "EvalSuite",
        "InvestigationDefaults",
        "InvestigationQuota",
        "LLMProvider",
        "MCPServer",
        "Skill",
    ),
)
EVAL_OUTCOME = Label("outcome", ("Passed", "Failed", "Inconclusive"))
EVAL_VERDICT = Label("verdict", ("Passed", "Regressed", "Insufficient", "Cancelled"))
FIRING_RESULT = Label("result", ("created", "refused", "overlap", "missed"))
CONDITION = Label("condition", ("Ready", "Available", "NotificationsReady", "Calibrated"))
QUOTA_STATE = Label("state", ("within", "warned", "exceeded"))
CONDITION_STATUS = Label("status", ("True", "False", "Unknown"))

ACCEPTED = _counter("investigations_submitted", "Accepted investigations and questions.", KIND)
TERMINAL = _counter("investigations_terminal", "Investigations and questions that have ended.", KIND, ENDS)
DURATION = _seconds(
    "investigation_duration",
    "Time from the start of a run's first attempt to its end, for runs that a worker ended.",
    _RUN_SECONDS,
    KIND,
)
WAIT = _seconds("investigation_wait", "Time from acceptance to the start of the first attempt.", _WAIT_SECONDS, KIND)
CLAIMED = _counter(
    "investigations_claimed", "Runs claimed by a worker; `resumed`: not for the first time.", KIND, CLAIM
)
SWEPT = _counter("swept_investigations", "Overdue runs without a worker that the sweep ended.")
QUEUED = _shared("investigations_queued", "Investigations waiting for a worker.")
RUNNING = _shared("investigations_running", "Investigations that have started and not ended, and are not parked.")
PARKED = _shared(
    "investigations_parked",
    "Investigations and answers that wait for people or for a provider's rate limit, without a worker.",
    WAIT_REASON,
)
PARKED_FOR = _seconds(
    "investigation_parked",
    "Time for which an investigation or an answer was parked before it went on.",
    _PARKED_SECONDS,
    WAIT_REASON,
)
OLDEST_QUEUED = _shared("investigations_queued_oldest_seconds", "Age of the oldest queued investigation.")
QUESTIONS = _shared("questions_open", "Questions that are not answered yet.", _OPEN)

WORKERS = _shared("workers", "Workers with a live lease.")
PLACES = _asked("worker_places", "Maximum concurrent investigations of this process.")
HELD = _asked("worker_runs", "Runs that this process holds.", KIND)
PROCESSES = _asked("worker_processes", "Running worker processes.")
RESTARTS = _counter("worker_process_restarts", "Worker processes of a pod that ended unexpectedly and were replaced.")
LEASES_LOST = _counter("lease_losses", "Runs abandoned by an attempt because it lost, or may have lost, its lease.")
WORKERS_LOST = _counter("worker_losses", "Times a worker of this process found its own lease expired.")
FENCED = _counter("fence_refusals", "Writes that the record rejected because the attempt was no longer current.")
LEFT = _counter("runs_left", "Runs left to be resumed because Postgres was unavailable or rejected a write.")

STAGES = _counter("stages", "Stages that have ended.", STAGE_KIND, ENDS)
ACTIONS = _counter(
    "action_stages",
    "Stages of kind Action that have ended, by what the record says and by the word of their model.",
    ACTED,
    MODEL_WORD,
)
EXECUTIONS = _counter("agent_executions", "Agent executions that have ended.", STRATEGY, ENDS)
DISPATCHES = _counter("sub_agent_dispatches", "Sub-agents that have ended, and dispatches that were refused.", DISPATCH)

MODEL_CALLS = _counter("llm_calls", "Finished model calls.", PROVIDER_TYPE, CALL_KIND, OUTCOME)
MODEL_ERRORS = _counter(
    "llm_errors", "Failed model calls, not counting retries within a call.", PROVIDER_TYPE, MODEL_ERROR
)
MODEL_SECONDS = _seconds("llm_duration", "Duration of model calls.", _MODEL_SECONDS, PROVIDER_TYPE)
MODEL_TOKENS = _counter(
    "llm_tokens", "Tokens reported by providers; output includes thinking, input cached.", PROVIDER_TYPE, TOKENS
)
MODEL_COST = _counter("llm_cost_usd", "Cost in US dollars of model calls with a known price.", PROVIDER_TYPE)
UNPRICED = _counter("llm_unpriced_calls", "Model calls of unknown usage or rates.", PROVIDER_TYPE)
FALLBACKS = _counter("llm_fallbacks", "Switches of an agent to its next provider, by cause.", MODEL_ERROR)
LIMIT_WAIT = _seconds("llm_limit_wait", "Time that model calls waited for provider limits.", _WAIT_SECONDS)

TOOL_CALLS = _counter("mcp_calls", "Tool calls sent to a server.", TRANSPORT, TOOL_OUTCOME)
TOOL_ERRORS = _counter("mcp_errors", "Tool calls that failed or have an unknown outcome.", TRANSPORT, _TOOL_ERROR)
TOOL_SECONDS = _seconds("mcp_duration", "Duration of tool calls.", _TOOL_SECONDS, TRANSPORT)
ESCALATIONS = _counter("escalations", "Decisions about second attempts of stages, by outcome.", ESCALATION)
HANDED_ON = _counter("handed_on_answers", "Tool calls of second attempts that results of the first attempt answered.")
SKILL_LOADS = _counter("skill_loads", "Calls of agents that load skills.", SKILL_LOAD)
REFUSED_TOOL_CALLS = _counter("refused_tool_calls", "Tool calls refused by a policy or because the tool has changed.")
GUARD_ANSWERS = _counter("guard_answers", "Repeated tool calls answered from the record of the run.")
GUARD_STOPS = _counter("guard_stops", "Agents made to conclude because they repeated themselves.")
BUDGET_STOPS = _counter("budget_stops", "Runs made to conclude because they reached a limit of their budget.", LIMIT)
DEGRADED = _counter("evidence_degraded", "Attempts of runs that continued without a tool server.")
PRECEDENT_SEARCHES = _counter(
    "precedent_searches",
    "Searches for earlier investigations; `failed`: the run goes on without.",
    SEARCHED,
)
PRECEDENTS_TOLD = _counter(
    "precedents_told", "Earlier investigations that accepted runs were told about, by how they ended.", ENDING
)
FINDINGS = _counter("findings", "Investigations that ended with a finding, by its confidence.", CONFIDENCE)
SCORES = _counter("scores", "Scorings of investigations by judges of suites, by how they ended.", SCORE_RESULT)
SCORE_POINTS = Metric(
    "tarsy_score_points",
    "histogram",
    "Points of scores, from 0 to 100.",
    buckets=(10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0),
)
SCORING_TOKENS = _counter("scoring_tokens", "Tokens that scoring used; a call that told none counts as the most.")
CITATIONS = _counter("evidence_citations", "Citations of findings, by whether the record supports them.", CITATION)
MASKING_FAILED = _counter("masking_failures", "Texts that could not be searched for secrets.", MASKED)

INTAKE = _counter("intake_notifications", "Answered notifications, by fate.", FATE)
UNROUTED = _counter("intake_unrouted_notifications", "Notifications that match no AlertRoute.")
QUEUE_FULL = _counter("intake_queue_full", "Notifications answered with 503 because the queue was full.")
OWED = _shared("intake_alerts_owed", "Accepted alerts whose Alert object is not created yet.")
OLDEST_OWED = _shared("intake_alerts_owed_oldest_seconds", "Age of the oldest accepted alert without an Alert object.")

NOTIFICATIONS = _counter(
    "notifications",
    "Attempts to send a notification about a run: `failed` ones are retried, `given_up` ones are not.",
    TOLD_BY,
    TOLD,
)
NOTICES_OWED = _shared("notifications_owed", "Notifications about runs that are not sent yet.")
OLDEST_NOTICE_OWED = _shared("notifications_owed_oldest_seconds", "Age of the oldest unsent notification.")

SLACK_CONNECTED = _asked("slack_connected", "1 if this process receives events from Slack.")
SLACK_QUESTIONS = _counter("slack_questions", "Questions from Slack that have ended, by outcome.", SLACK_OUTCOME)

ACTIVE = _asked("controller_active", "1 if this process holds the Lease of the controller.")
QUOTAS = _shared(
    "quotas",
    "InvestigationQuotas by state, as last watched; `exceeded`: a limit has no room in the current period.",
    QUOTA_STATE,
)
OBJECTS = _shared(
    "configuration_objects",
    "Configuration objects by condition, as last watched.",
    CONFIGURATION,
    CONDITION,
    CONDITION_STATUS,
)
UNPUBLISHED = _shared("projection_pending", "Runs whose latest step is not in the status of their object yet.")
PROJECTION_LAG = _shared("projection_lag_seconds", "Age of the oldest end of a run that no object status shows yet.")

HISTORY_CHANGES = _counter("history_changes", "Recorded changes of objects, by type.", CHANGE_TYPE)
HISTORY_SHED = _counter(
    "history_shed_changes", "Changes that came faster than they could be recorded, by type of their kind.", CHANGE_TYPE
)
HISTORY_EVICTED = _counter(
    "history_evicted_versions", "Recorded changes deleted because the history of a namespace reached its size limit."
)
HISTORY_WATCHES = _asked(
    "history_watches", "Kinds in namespaces with a history, by the state of their watch.", WATCH_STATE
)

EVAL_SAMPLES = _counter("eval_samples", "Samples of EvalRuns that have ended.", EVAL_OUTCOME)
EVAL_RUNS = _counter("eval_runs", "EvalRuns that have ended, by verdict.", EVAL_VERDICT)

FINDING_VERDICTS = _counter(
    "finding_verdicts", "Verdicts of people on findings, by the confidence of the finding.", CONFIDENCE, FINDING_VERDICT
)

INCIDENT_OUTCOMES = _counter(
    "incident_outcomes",
    "What became of the alerts of findings, by the confidence of the finding.",
    CONFIDENCE,
    INCIDENT_OUTCOME,
)

DEFAULTED = _counter("defaulted_alerts", "Alerts that no Chain claims and the default chain of their namespace took.")

SCHEDULE_TIMES = _counter("schedule_firings", "Times of AlertSchedules, by what became of them.", FIRING_RESULT)

RECORD_UP = Metric(
    "tarsy_record_up",
    "gauge",
    "1 if Postgres answered this process in time; other gauges are read from it.",
    asked=True,
    aggregate="min",
)
POOL_WAITS = _counter("postgres_pool_waits", "Calls that waited long for a connection to Postgres.", POOL, asked=True)
SLOW = _counter("postgres_slow_calls", "Slow calls to Postgres.", POOL, asked=True)
CONNECTIONS = _asked("postgres_connections", "Connections of this process to Postgres.", POOL, CONNECTION)

HTTP_REQUESTS = _counter("http_requests", "Answered requests.", ROUTE, METHOD, STATUS)
HTTP_SECONDS = _seconds("http_duration", "Duration of requests, streams until their end.", _HTTP_SECONDS, ROUTE)
HTTP_REFUSALS = _counter("http_refusals", "Requests answered with 401, 403, 503 or 500.", REFUSAL)
STREAMS = _asked("ws_connections_active", "Open streams, over WebSocket or SSE.")

ALL: Final[tuple[Metric, ...]] = tuple(found for found in tuple(globals().values()) if isinstance(found, Metric))
"""All metrics, in the order of this file."""
