"""Defines the frozen plan: everything a run needs to know, resolved once at acceptance.

It is stored as JSON in Postgres and never looked up again: a Git push in the middle of a run changes the next run,
not this one. It contains references to Secrets, never their values: a rotated key applies to the next call.
"""

from tarsy.plan.model._plan import (
    AgentLimits,
    AgentPlan,
    ChangesPlan,
    FallbackPlan,
    Plan,
    PlannedBudget,
    ReplayPlan,
    StagePlan,
    Strategy,
    SuccessPolicy,
)
from tarsy.plan.model._provider import (
    Backend,
    CallLimits,
    CallTimeouts,
    LongRates,
    PlannedRates,
    PlannedThinking,
    ProviderPlan,
    Vertex,
)
from tarsy.plan.model._reference import ConfigMapKey, ObjectRef, SecretKey, Value
from tarsy.plan.model._server import (
    CustomMask,
    EvidencePlan,
    EvidenceRule,
    HttpTransport,
    MaskingPlan,
    ReachPlan,
    ServerPlan,
    StdioTransport,
    SummarizationPlan,
    WorkloadTransport,
)

__all__ = [
    "AgentLimits",
    "AgentPlan",
    "Backend",
    "CallLimits",
    "CallTimeouts",
    "ChangesPlan",
    "ConfigMapKey",
    "CustomMask",
    "EvidencePlan",
    "EvidenceRule",
    "FallbackPlan",
    "HttpTransport",
    "LongRates",
    "MaskingPlan",
    "ObjectRef",
    "Plan",
    "PlannedBudget",
    "PlannedRates",
    "PlannedThinking",
    "ProviderPlan",
    "ReachPlan",
    "ReplayPlan",
    "SecretKey",
    "ServerPlan",
    "StagePlan",
    "StdioTransport",
    "Strategy",
    "SuccessPolicy",
    "SummarizationPlan",
    "Value",
    "Vertex",
    "WorkloadTransport",
]
