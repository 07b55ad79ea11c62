"""The kinds of tarsy.dev/v1alpha1, one module a kind.

Decision: `KINDS` is the only list of them; CRDs, parsing and controllers are driven by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1.agent import Agent, AgentSpec
from tarsy.resources.v1alpha1.alert import Alert, AlertContent, AlertSpec, AlertStatus
from tarsy.resources.v1alpha1.alert_route import AlertRoute, AlertRouteSpec, AlertRouteStatus
from tarsy.resources.v1alpha1.alert_schedule import AlertSchedule, AlertScheduleSpec, AlertScheduleStatus
from tarsy.resources.v1alpha1.chain import Chain, ChainSpec, ChainStatus
from tarsy.resources.v1alpha1.chat_message import ChatMessage, ChatMessageSpec, ChatMessageStatus
from tarsy.resources.v1alpha1.common import ConditionType, ConfigStatus
from tarsy.resources.v1alpha1.eval_run import EvalRun, EvalRunSpec, EvalRunStatus
from tarsy.resources.v1alpha1.eval_suite import EvalSuite, EvalSuiteSpec, EvalSuiteStatus
from tarsy.resources.v1alpha1.investigation import Investigation, InvestigationSpec
from tarsy.resources.v1alpha1.investigation_defaults import InvestigationDefaults, InvestigationDefaultsSpec
from tarsy.resources.v1alpha1.investigation_quota import (
    InvestigationQuota,
    InvestigationQuotaSpec,
    InvestigationQuotaStatus,
)
from tarsy.resources.v1alpha1.investigation_status import InvestigationStatus
from tarsy.resources.v1alpha1.llm_provider import LLMProvider, LLMProviderSpec
from tarsy.resources.v1alpha1.mcp_server import MCPServer, MCPServerSpec
from tarsy.resources.v1alpha1.review import Review, ReviewSpec, ReviewStatus
from tarsy.resources.v1alpha1.skill import Skill, SkillSpec, SkillStatus
from tarsy.resources.v1alpha1.stage import Stage, StageAgent, Synthesis
from tarsy.resources.v1alpha1.tool_approval import ToolApproval, ToolApprovalSpec, ToolApprovalStatus

KINDS: Mapping[str, type[AnyResource]] = MappingProxyType(
    {
        kind.KIND: kind
        for kind in (
            Alert,
            Investigation,
            Chain,
            Agent,
            MCPServer,
            LLMProvider,
            ChatMessage,
            InvestigationDefaults,
            AlertRoute,
            EvalSuite,
            EvalRun,
            ToolApproval,
            Skill,
            AlertSchedule,
            Review,
            InvestigationQuota,
        )
    }
)

__all__ = [
    "KINDS",
    "Agent",
    "AgentSpec",
    "Alert",
    "AlertContent",
    "AlertRoute",
    "AlertRouteSpec",
    "AlertRouteStatus",
    "AlertSchedule",
    "AlertScheduleSpec",
    "AlertScheduleStatus",
    "AlertSpec",
    "AlertStatus",
    "Chain",
    "ChainSpec",
    "ChainStatus",
    "ChatMessage",
    "ChatMessageSpec",
    "ChatMessageStatus",
    "ConditionType",
    "ConfigStatus",
    "EvalRun",
    "EvalRunSpec",
    "EvalRunStatus",
    "EvalSuite",
    "EvalSuiteSpec",
    "EvalSuiteStatus",
    "Investigation",
    "InvestigationDefaults",
    "InvestigationDefaultsSpec",
    "InvestigationQuota",
    "InvestigationQuotaSpec",
    "InvestigationQuotaStatus",
    "InvestigationSpec",
    "InvestigationStatus",
    "LLMProvider",
    "LLMProviderSpec",
    "MCPServer",
    "MCPServerSpec",
    "Review",
    "ReviewSpec",
    "ReviewStatus",
    "Skill",
    "SkillSpec",
    "SkillStatus",
    "Stage",
    "StageAgent",
    "Synthesis",
    "ToolApproval",
    "ToolApprovalSpec",
    "ToolApprovalStatus",
]
