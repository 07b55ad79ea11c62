"""The frozen plan: everything a run needs to know, resolved once at acceptance (DESIGN section 3).

It is stored as JSON in Postgres and never looked up again: a Git push in the middle of a run changes the next run,
not this one. It holds references to Secrets, never their values: a rotated key applies to the next call.
"""

import hashlib
from enum import StrEnum
from typing import Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field

from tarsy.plan.policy import ToolPolicy
from tarsy.resources.v1alpha1.masking import DEFAULT_GROUPS, DEFAULT_PATTERNS


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Strategy(StrEnum):
    """How an agent iterates; the strategy decides the backend (DESIGN section 6)."""

    REACT = "react"
    NATIVE_THINKING = "native-thinking"
    LANGCHAIN = "langchain"
    SYNTHESIS = "synthesis"
    SYNTHESIS_NATIVE_THINKING = "synthesis-native-thinking"
    SINGLE_CALL = "single-call"


class Backend(StrEnum):
    """How a model is spoken to. Strategies name the family; in that of `langchain` a type's own client stands in."""

    LANGCHAIN = "langchain"
    OPENAI_NATIVE = "openai-native"
    GOOGLE_NATIVE = "google-native"


class SuccessPolicy(StrEnum):
    """When a stage counts as done: any agent completed, or all of them."""

    ANY = "Any"
    ALL = "All"


class ObjectRef(_Frozen):
    """A configuration object as it was when the plan was made."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    generation: int = 0


class SecretKey(_Frozen):
    """One key of one Secret: a reference, fetched on use."""

    namespace: str
    name: str
    key: str


class ConfigMapKey(_Frozen):
    """One key of one ConfigMap: a reference, fetched on use."""

    namespace: str
    name: str
    key: str


class Value(_Frozen):
    """A named value that stands in the object, in a Secret or in a ConfigMap (an environment variable, a header)."""

    name: str
    value: str | None = None
    secret: SecretKey | None = None
    config_map: ConfigMapKey | None = None


class LongRates(_Frozen):
    """What a call costs whose input has more than `above` tokens, all of it."""

    above: int
    input: float
    output: float
    cached: float | None = None


class PlannedRates(_Frozen):
    """What a model costs, in US dollars for a million tokens; thinking is billed as output.

    `cached` is for input the provider had cached (None: as `input`). `as_of` is the date of the bundled table that
    they are from; None when the provider object says them.
    """

    input: float
    output: float
    cached: float | None = None
    long: LongRates | None = None
    as_of: str | None = None


class PlannedThinking(_Frozen):
    """How much a model thinks, in the one measure that it knows: tokens, a level, or an effort."""

    budget: int | None = None
    level: str | None = None
    effort: str | None = None


class Vertex(_Frozen):
    """Where in Vertex AI a model is asked; `own_identity`: as the pod that asks, without a key."""

    project: str
    location: str
    own_identity: bool = False


class CallLimits(_Frozen):
    """How much a provider takes of all runs together: calls at once, calls and tokens a minute; None is no limit."""

    max_concurrent: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


class CallTimeouts(_Frozen):
    """How long a model call may take, in seconds.

    `silence`: from the last sign of life of the server to its next, before the answer begins. `first_token`: from the
    start of a call to the first piece of its answer, from a server that shows life. `stall`: between two signs of life
    after that. `call`: the whole call. `iteration`: the call and the tools that it asks for.
    """

    silence: float
    first_token: float
    stall: float
    call: float
    iteration: float


class ProviderPlan(_Frozen):
    """One model of one provider. Without `rates` its cost is unknown, never zero; without `thinking` it thinks as much
    as reference section 1.7 says for its model.

    `backend` is the client for the strategy that uses it; plans older than this field were made for LangChain.
    `limits` are those of this generation: the newest that is known counts, for all runs (`store.slots`). `timeouts` are
    resolved field by field (`plan.timeouts`); plans older than this field have those of the run's limits.
    """

    ref: ObjectRef
    type: str
    backend: Backend = Backend.LANGCHAIN
    model: str
    base_url: str | None = None
    vertexai: Vertex | None = None
    api_key: SecretKey | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    context_window: int | None = None
    thinking: PlannedThinking | None = None
    rates: PlannedRates | None = None
    limits: CallLimits | None = None
    timeouts: CallTimeouts | None = None


class StdioTransport(_Frozen):
    """A tool server run as a child process (never in an operator or worker pod).

    With `kubeconfig` it gets one, as the ServiceAccount of the agent that uses it.
    """

    type: Literal["stdio"] = "stdio"
    command: str
    args: tuple[str, ...] = ()
    env: tuple[Value, ...] = ()
    kubeconfig: bool = False


class HttpTransport(_Frozen):
    """A tool server behind streamable HTTP, or (`sse`) behind the older HTTP with server-sent events.

    `bearer_token` is sent with every request, or a token for `token_audience` of the ServiceAccount of the agent that
    uses it; `ca` are the authorities that its certificate is verified by, in PEM form (None: the system's).
    """

    type: Literal["http", "sse"] = "http"
    url: str
    headers: tuple[Value, ...] = ()
    bearer_token: Value | None = None
    token_audience: str | None = None
    ca: Value | None = None


class WorkloadTransport(_Frozen):
    """A tool server that the operator runs in the cluster; `per_run`: one for each run (`tarsy.plan.workload`).

    With `kubeconfig` a run has one for each ServiceAccount that its agents use it as, which acts as that. `missing`
    says within a run why it has none; no plan holds it.
    """

    type: Literal["workload"] = "workload"
    namespace: str
    server: str
    per_run: bool = False
    kubeconfig: bool = False
    missing: str = Field(default="", exclude=True)


class CustomMask(_Frozen):
    """A masking pattern of a user, in RE2 syntax."""

    name: str
    pattern: str
    replacement: str


class MaskingPlan(_Frozen):
    """What is taken out of texts: built-in patterns by group and by name, then the user's own."""

    enabled: bool = True
    groups: tuple[str, ...] = DEFAULT_GROUPS
    patterns: tuple[str, ...] = DEFAULT_PATTERNS
    custom: tuple[CustomMask, ...] = ()


class SummarizationPlan(_Frozen):
    """From where on results of a server are told as a summary, and how long one shall be (reference section 1.9)."""

    enabled: bool = True
    threshold_tokens: int = 5_000
    summary_tokens: int = 1_000


class ReachPlan(_Frozen):
    """How far the calls of a server reach for this run.

    `foreign`: they use the rights of another namespace than the run's. `namespace` is the one that calls are held to
    (None: all that the server may reach), by the server itself or by `arguments`; `cluster_tools` need none of those.
    """

    foreign: bool = False
    namespace: str | None = None
    bound_by: Literal["Argument", "Server"] = "Argument"
    arguments: tuple[str, ...] = ("namespace",)
    cluster_tools: tuple[str, ...] = ()


class ServerPlan(_Frozen):
    """One MCP server with what of it this agent may use.

    `selected` are the tools the agent, chain or alert chose (empty: all); the other lists are the server's own, with
    `*` for any characters. `policy` is the stricter of the server's and the agent's; plans older than that field had
    none, and their runs end as they began. What the server says of its tools counts if `trust_annotations`. `account`
    is the ServiceAccount of the run's namespace that a server which `wants_account` acts as (None: the agent names
    none). `reach` is None in plans older than that field (`tarsy.plan.reach.read_plan` bounds them).
    """

    ref: ObjectRef
    name: str
    transport: StdioTransport | HttpTransport | WorkloadTransport = Field(discriminator="type")
    instructions: str = ""
    selected: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    repeatable: tuple[str, ...] = ()
    policy: ToolPolicy = ToolPolicy.ALL
    read_only: tuple[str, ...] = ()
    destructive: tuple[str, ...] = ()
    trust_annotations: bool = False
    masking: MaskingPlan = MaskingPlan()
    summarization: SummarizationPlan = SummarizationPlan()
    init_seconds: float = 30.0
    call_seconds: float | None = None
    account: str | None = None
    reach: ReachPlan | None = None

    @property
    def wants_account(self) -> bool:
        """Whether it acts as the ServiceAccount of the agent that uses it."""
        if isinstance(self.transport, StdioTransport | WorkloadTransport):
            return self.transport.kubeconfig
        return isinstance(self.transport, HttpTransport) and self.transport.token_audience is not None


class AgentLimits(_Frozen):
    """Seconds and counts that bound a run (defaults: reference section 2, "Loop" and "Retries").

    For `repeat_seconds` the result of a repeatable call is given again instead of the same call being made again;
    after `repeats_in_a_row` of those an agent must conclude. `context_tokens` is the window of a provider that does
    not say its own. `conclusion_seconds` bounds each model call of a run that was asked to conclude. A provider's own
    `timeouts` count before those of model calls here.
    """

    investigation_seconds: float = 2400.0
    iteration_seconds: float = 360.0
    model_call_seconds: float = 300.0
    tool_call_seconds: float = 60.0
    first_token_seconds: float = 120.0
    stall_seconds: float = 60.0
    conclusion_seconds: float = 60.0
    consecutive_timeouts: int = 2
    empty_answers: int = 2
    repeat_seconds: float = 120.0
    repeats_in_a_row: int = 3
    context_tokens: int = 131_072
    finding_repairs: int = Field(default=1, ge=0, le=1)


class PlannedBudget(_Frozen):
    """What a whole run may use; None is no limit. Reaching one of them forces a conclusion."""

    tokens: int | None = None
    cost_usd: float | None = None
    tool_calls: int | None = None
    minutes: float | None = None


class FallbackPlan(_Frozen):
    """What an agent changes to when its provider fails: a provider, the strategy to use with it, its native tools."""

    provider: ProviderPlan
    strategy: Strategy
    native_tools: tuple[str, ...] = ()


class AgentPlan(_Frozen):
    """One agent of one stage. `name` is what people see (`triage-2` for a replica), `agent` the object.

    `native_tools` are tools of the provider that are on (`google_search`, `code_execution`, `url_context`), in a
    stable order; `fallback` is tried in order, and `fallback_skipped` are the providers kept out of it because they
    cannot do this agent's work (reference section 1.7, "incompatible skipped"). `summarizer` summarizes long results of
    tools (None: `provider` does).
    """

    name: str
    agent: str
    strategy: Strategy
    provider: ProviderPlan
    max_iterations: int
    instructions: str = ""
    servers: tuple[ServerPlan, ...] = ()
    native_tools: tuple[str, ...] = ()
    fallback: tuple[FallbackPlan, ...] = ()
    fallback_skipped: tuple[str, ...] = ()
    summarizer: ProviderPlan | None = None


class StagePlan(_Frozen):
    """One stage: its agents side by side, and the synthesis that follows when there is more than one."""

    name: str
    agents: tuple[AgentPlan, ...]
    parallel: Literal["multi_agent", "replica"] | None = None
    success_policy: SuccessPolicy = SuccessPolicy.ANY
    synthesis: AgentPlan | None = None


class Plan(_Frozen):
    """A whole run, resolved.

    `chat` answers follow-up questions (None: none are taken), each within `chat_seconds` (None: the run's own limit)
    and `chat_budget`. `objects` are all objects the plan came from, with generations, `brought` those MCPServers among
    them that the alert brought itself (who runs it, or asks about it, must be allowed to use them). `not_used` has a
    sentence for each setting that rights of another namespace keep out of the run. `namespace_limit`
    and `chain_limit` bound how many runs of the namespace and of the chain are in progress at once (None: only the
    installation's own limit). `alert_masking` is for what the run is about and its runbook, `model_output_masking` for
    what its models say (None: the installation's).
    """

    version: Literal[1] = 1
    namespace: str
    alert_type: str
    chain: ObjectRef
    stages: tuple[StagePlan, ...]
    executive_summary: AgentPlan | None
    chat: AgentPlan | None = None
    chat_seconds: float | None = None
    chat_budget: PlannedBudget = PlannedBudget()
    alert_masking: MaskingPlan | None = None
    model_output_masking: MaskingPlan | None = None
    limits: AgentLimits = AgentLimits()
    budget: PlannedBudget = PlannedBudget()
    namespace_limit: int | None = None
    chain_limit: int | None = None
    objects: tuple[ObjectRef, ...] = ()
    brought: tuple[ObjectRef, ...] = ()
    not_used: tuple[str, ...] = ()

    @property
    def agents(self) -> tuple[AgentPlan, ...]:
        """All agents of the run: those of its stages, then those of syntheses and of the executive summary."""
        own = [agent for stage in self.stages for agent in stage.agents]
        others = (*(stage.synthesis for stage in self.stages), self.executive_summary)
        return (*own, *(agent for agent in others if agent is not None))

    @property
    def providers(self) -> tuple[ProviderPlan, ...]:
        """All providers that agents of the run may ask: their own, those of their fallback and their summarizers."""
        asked = [(a.provider, *(entry.provider for entry in a.fallback), a.summarizer) for a in self.agents]
        return tuple(provider for of_agent in asked for provider in of_agent if provider is not None)

    def to_answer(self) -> "Plan":
        """The plan of the answer to one question about this run; only where `chat` is."""
        if self.chat is None:
            raise ValueError("this plan takes no questions")
        seconds = self.chat_seconds or self.limits.investigation_seconds
        changes = {
            "stages": (StagePlan(name="chat", agents=(self.chat,)),),
            "executive_summary": None,
            "chat": None,
            "limits": self.limits.model_copy(update={"investigation_seconds": seconds}),
            "budget": self.chat_budget,
            "namespace_limit": None,
            "chain_limit": None,
        }
        return self.model_copy(update=changes)

    @property
    def accounts(self) -> frozenset[str]:
        """The ServiceAccounts that tool servers of this run act as, without the answers to questions about it."""
        agents = (agent for stage in self.stages for agent in stage.agents)
        return frozenset(s.account for agent in agents for s in agent.servers if s.account is not None)

    def dump(self) -> bytes:
        """Canonical JSON: the same plan always gives the same bytes."""
        return orjson.dumps(self.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, as hex: what the status shows as `planHash`."""
        return hashlib.sha256(self.dump()).hexdigest()
