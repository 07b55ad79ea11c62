"""Defines the part of a plan that describes a tool server."""

from typing import Literal

from pydantic import Field

from tarsy.plan.model._reference import FrozenModel, ObjectRef, Value
from tarsy.plan.policy import ToolPolicy, names
from tarsy.record.integrity import Integrity
from tarsy.resources.v1alpha1.masking import DEFAULT_GROUPS, DEFAULT_PATTERNS


class StdioTransport(FrozenModel):
    """A tool server that runs as a child process (never in an operator or worker pod)."""

    type: Literal["stdio"] = "stdio"
    command: str
    args: tuple[str, ...] = ()
    env: tuple[Value, ...] = ()
    kubeconfig: bool = False
    """Whether it receives a kubeconfig for the ServiceAccount of the agent that uses it."""


class HttpTransport(FrozenModel):
    """A tool server behind streamable HTTP, or (`sse`) behind the older HTTP with server-sent events."""

    type: Literal["http", "sse"] = "http"
    url: str
    headers: tuple[Value, ...] = ()
    bearer_token: Value | None = None
    """Sent with every request."""
    token_audience: str | None = None
    """Sent instead: a token with this audience, of the ServiceAccount of the agent that uses the server."""
    ca: Value | None = None
    """Certificate authorities of the server, in PEM form; None: the system's."""


class WorkloadTransport(FrozenModel):
    """A tool server that the operator runs in the cluster (`tarsy.plan.workload`)."""

    type: Literal["workload"] = "workload"
    namespace: str
    server: str
    per_run: bool = False
    """Whether each run has one of its own."""
    kubeconfig: bool = False
    """Whether a run has one for each ServiceAccount of its agents, which acts as that account."""
    missing: str = Field(default="", exclude=True)
    """Within a run, the reason why it has none; never stored."""


class CustomMask(FrozenModel):
    """A custom masking pattern, in RE2 syntax."""

    name: str
    pattern: str
    replacement: str


class MaskingPlan(FrozenModel):
    """Masking of texts: built-in patterns by group and by name, then custom patterns."""

    enabled: bool = True
    groups: tuple[str, ...] = DEFAULT_GROUPS
    patterns: tuple[str, ...] = DEFAULT_PATTERNS
    custom: tuple[CustomMask, ...] = ()


class SummarizationPlan(FrozenModel):
    """Length from which a server's results are summarized, and the length of a summary, in tokens."""

    enabled: bool = True
    threshold_tokens: int = 5_000
    summary_tokens: int = 1_000


class ReachPlan(FrozenModel):
    """Namespaces that the calls of a server can reach in this run."""

    foreign: bool = False
    """Whether calls use the rights of another namespace than the run's."""
    namespace: str | None = None
    """The only namespace that calls may name; None: all that the server can reach."""
    bound_by: Literal["Argument", "Server"] = "Argument"
    """Whether `arguments` enforce that namespace, or the server itself."""
    arguments: tuple[str, ...] = ("namespace",)
    cluster_tools: tuple[str, ...] = ()
    """Tools that need none of `arguments`."""


class EvidenceRule(FrozenModel):
    """The integrity class of the results of some tools."""

    tools: tuple[str, ...]
    integrity: Integrity


class PinPlan(FrozenModel):
    """The tools of a server that may be used: as first seen, or as people accepted them."""

    trusted: tuple[tuple[str, str], ...] = ()
    """Name of each tool with the SHA-256 of its definition. Any other tool or definition is withheld."""

    def admits(self, tool: str, digest: str) -> bool:
        """Returns whether a definition of a tool may be used."""
        return (tool, digest) in self.trusted


class EvidencePlan(FrozenModel):
    """Holds a server's declaration about the integrity of its results."""

    rules: tuple[EvidenceRule, ...] = ()
    trust_marks: bool = False
    """Whether the server's own marks count in results of class A."""
    state_tools: tuple[str, ...] = ()
    """Tools whose result is the state at the time of the call."""

    def integrity_of(self, tool: str) -> Integrity:
        """Returns the class of the results of a tool: of the first rule that names it, else A."""
        return next((rule.integrity for rule in self.rules if names(rule.tools, tool)), Integrity.A)

    def is_state(self, tool: str) -> bool:
        """Returns whether the result of a tool is a state."""
        return names(self.state_tools, tool)


class TargetRule(FrozenModel):
    """The objects that calls of some tools change: `object` (CEL), or the `manifest` in an argument."""

    tools: tuple[str, ...]
    object: str | None = None
    manifest: str | None = None
    change: str | None = None
    """CEL of the change, as a JSON merge patch."""


class DryRunRule(FrozenModel):
    """The argument that makes calls of some tools a dry run."""

    tools: tuple[str, ...]
    argument: str
    value: str | bool


class UndoRule(FrozenModel):
    """The call that undoes a call of some tools; `arguments` is CEL."""

    tools: tuple[str, ...]
    tool: str
    arguments: str


class ApprovalPlan(FrozenModel):
    """Holds a server's declaration about calls that need approval."""

    account: str | None = None
    """ServiceAccount of the run's namespace that the targets are read with; None: they are not read."""
    required: Literal[1, 2] = 1
    targets: tuple[TargetRule, ...] = ()
    undetermined: Literal["Ask", "Refuse"] = "Refuse"
    git_ops: Literal["Refuse", "Warn"] = "Refuse"
    dry_run: tuple[DryRunRule, ...] = ()
    undo: tuple[UndoRule, ...] = ()

    def target_rule(self, tool: str) -> TargetRule | None:
        """Returns the rule for the objects of a tool's calls."""
        return next((rule for rule in self.targets if names(rule.tools, tool)), None)

    def dry_run_rule(self, tool: str) -> DryRunRule | None:
        """Returns the rule for the dry run of a tool's calls."""
        return next((rule for rule in self.dry_run if names(rule.tools, tool)), None)

    def undo_rule(self, tool: str) -> UndoRule | None:
        """Returns the rule for the call that undoes a tool's calls."""
        return next((rule for rule in self.undo if names(rule.tools, tool)), None)


class OutboundRule(FrozenModel):
    """Arguments of some tools whose values leave; `address`: they say where to."""

    tools: tuple[str, ...]
    arguments: tuple[str, ...]
    address: bool = False


class DataFlowPlan(FrozenModel):
    """Holds a server's declaration about data that may leave through its tools."""

    outbound: tuple[OutboundRule, ...] = ()
    sensitive: tuple[str, ...] = ()
    """Tools whose results must not leave."""

    def outbound_of(self, tool: str) -> frozenset[str]:
        """Returns the arguments of a tool whose values leave."""
        return frozenset(name for rule in self.outbound if names(rule.tools, tool) for name in rule.arguments)

    def addresses_of(self, tool: str) -> frozenset[str]:
        """Returns the arguments of a tool that hold addresses."""
        rules = [rule for rule in self.outbound if rule.address and names(rule.tools, tool)]
        return frozenset(name for rule in rules for name in rule.arguments)

    def is_sensitive(self, tool: str) -> bool:
        """Returns whether the results of a tool must not leave."""
        return names(self.sensitive, tool)


class ExtractedFieldPlan(FrozenModel):
    """One value that is taken from a result of outside."""

    name: str
    type: Literal["Number", "Time", "Enum", "Identifier", "Quote"]
    values: tuple[str, ...] = ()
    """Possible values, of an Enum."""
    longest: int = 64
    """Maximum characters, of an Identifier or a Quote."""
    max_items: int = 1
    description: str = ""


class ExtractionRulePlan(FrozenModel):
    """The values that agents get in place of the results of some tools."""

    tools: tuple[str, ...]
    fields: tuple[ExtractedFieldPlan, ...]


class ServerPlan(FrozenModel):
    """One MCP server and its tools that one agent may use; `*` in the server's own lists matches any characters."""

    ref: ObjectRef
    name: str
    transport: StdioTransport | HttpTransport | WorkloadTransport = Field(discriminator="type")
    instructions: str = ""
    selected: tuple[str, ...] = ()
    """Tools that the agent, chain or alert selects; empty: all."""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    repeatable: tuple[str, ...] = ()
    policy: ToolPolicy = ToolPolicy.ALL
    """The stricter of the server's and the agent's; runs of plans without this field end as they began."""
    read_only: tuple[str, ...] = ()
    destructive: tuple[str, ...] = ()
    trust_annotations: bool = False
    """Whether the server's own annotations of its tools count."""
    masking: MaskingPlan = MaskingPlan()
    summarization: SummarizationPlan = SummarizationPlan()
    init_seconds: float = 30.0
    call_seconds: float | None = None
    account: str | None = None
    """ServiceAccount of the run's namespace that the server acts as, if it `wants_account`; None: none is set."""
    reach: ReachPlan | None = None
    """None in plans without this field (`tarsy.plan.reach.read_plan` bounds them)."""
    evidence: EvidencePlan | None = Field(default=None, exclude_if=lambda evidence: evidence is None)
    """None: nothing is declared, so workloads can write all results."""
    approval: ApprovalPlan | None = Field(default=None, exclude_if=lambda approval: approval is None)
    """None: nothing is declared of calls that need approval."""
    pin: PinPlan | None = Field(default=None, exclude_if=lambda pin: pin is None)
    """None: tools need not be accepted. Older workers cannot read a plan with it, and leave its run to newer ones."""
    extraction: tuple[ExtractionRulePlan, ...] = Field(default=(), exclude_if=lambda rules: not rules)
    data_flow: DataFlowPlan = Field(default=DataFlowPlan(), exclude_if=lambda flow: flow == DataFlowPlan())

    def extracted_fields(self, tool: str) -> tuple[ExtractedFieldPlan, ...]:
        """Returns the values that agents get in place of the results of a tool: of the first rule that names it."""
        return next((rule.fields for rule in self.extraction if names(rule.tools, tool)), ())

    @property
    def wants_account(self) -> bool:
        """Whether it acts as the ServiceAccount of the agent that uses it."""
        if isinstance(self.transport, StdioTransport | WorkloadTransport):
            return self.transport.kubeconfig
        return isinstance(self.transport, HttpTransport) and self.transport.token_audience is not None

    @property
    def accounts(self) -> frozenset[str]:
        """ServiceAccounts that its calls act as, or that the targets of its calls are read with."""
        reader = (
            self.approval.account if self.approval is not None and self.policy is not ToolPolicy.READ_ONLY else None
        )
        return frozenset(account for account in (self.account, reader) if account is not None)
