"""For every CEL rule, objects that keep it and objects that break it.

Decision: a case finds its rule by model and a fragment of its CEL, so a rule that changes its meaning loses its case.
"""

from dataclasses import dataclass
from typing import Any

from tarsy.resources.schema import Model, ValidationRule
from tarsy.resources.v1alpha1 import InvestigationDefaults, MCPServer
from tarsy.resources.v1alpha1.alert import AlertContent, AlertDataSource, AlertSpec
from tarsy.resources.v1alpha1.alert_route import RouteAuth
from tarsy.resources.v1alpha1.alert_schedule import AlertScheduleSpec, ScheduledAlert
from tarsy.resources.v1alpha1.approval_settings import TargetDeclaration
from tarsy.resources.v1alpha1.chain import ChainSpec, Promotion
from tarsy.resources.v1alpha1.chat_message import ChatMessageSpec
from tarsy.resources.v1alpha1.common import LocalRunbook, Runbook
from tarsy.resources.v1alpha1.eval_run import EvalRunSpec
from tarsy.resources.v1alpha1.eval_suite import CaseSource, EvalSuiteSpec
from tarsy.resources.v1alpha1.evidence import EvidenceDeclaration
from tarsy.resources.v1alpha1.expectation import CaseLimits, Expectation
from tarsy.resources.v1alpha1.extraction import ExtractedField
from tarsy.resources.v1alpha1.investigation import InvestigationSpec, Replay
from tarsy.resources.v1alpha1.investigation_quota import QuotaHard
from tarsy.resources.v1alpha1.llm_provider import LLMProviderSpec, Thinking
from tarsy.resources.v1alpha1.mcp_server import MCPServerSpec
from tarsy.resources.v1alpha1.namespace_grant import AllowedNamespaces, LabelRequirement
from tarsy.resources.v1alpha1.notify import NotifyTarget
from tarsy.resources.v1alpha1.review import ReviewSpec
from tarsy.resources.v1alpha1.skill import AppliesTo, Skill, SkillSpec
from tarsy.resources.v1alpha1.stage import Stage, StageAgent
from tarsy.resources.v1alpha1.tool_approval import ToolApprovalSpec
from tarsy.resources.v1alpha1.transport import CaSource, Header, Http, Transport
from tarsy.resources.v1alpha1.workload import EnvVar, Run

SCORED = {"chains": ["a"], "budget": {"tokens": 1}}
REF = {"configMapKeyRef": {"name": "cm", "key": "k"}}
GIT = {"git": {"url": "https://git.example/a", "commit": "0" * 40, "path": "a"}}
SECRET = {"secretKeyRef": {"name": "s", "key": "k"}}
VERTEX = {"type": "vertexai", "model": "m", "vertexai": {"project": "p"}}
KEYLESS = VERTEX | {"vertexai": {"project": "p", "credentials": "WorkloadIdentity"}}
HTTP = {"url": "https://tools.example/mcp"}
RUN_STDIO = {"transport": {"type": "stdio"}, "run": {"image": "tools", "command": ["x"]}}
RUN_HTTP = {"transport": {"type": "http"}, "run": {"image": "tools", "port": 8080}}
RUN_ACTING = {"image": "tools", "scope": "PerRun", "kubeconfig": True}
OF_AGENTS = {"name": "s", "kind": "Agents", "agents": [{"name": "a"}], "replicas": 1}
SUB_AGENT = {"agentRef": {"name": "b"}}
CHANGES = {"name": "s", "kind": "Changes", "replicas": 1}
ACTION = {"name": "s", "kind": "Action", "agents": [{"name": "a"}], "replicas": 1}
RECORD = {"digest": "0" * 64, "sizeBytes": 1}
SLACK = {"channel": "#alerts", "tokenSecretRef": REF["configMapKeyRef"]}
WEBHOOK = {"url": "https://hooks.example/in", "signingSecretRef": REF["configMapKeyRef"]}
BASIC = {"username": "alertmanager", "passwordSecretRef": REF["configMapKeyRef"]}
SCHEDULE: dict[str, Any] = {"schedule": "0 9 * * *", "template": {"alertType": "a", "data": "x"}}
EVAL_RUN = {"suiteRef": {"name": "s"}, "candidate": {"chainRef": {"name": "c"}}, "desiredState": "Running"}
EVAL_CASE = {"suiteUid": "u", "name": "c", "digest": "0" * 64}
RUN_REF = {"name": "a", "uid": "1", "kind": "Investigation"}
CHANGED = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1", "specHash": f"sha256:{'c' * 64}"}
DECISION = {"username": "anna", "decision": "Approve", "argumentsDigest": f"sha256:{'a' * 64}"}
REVIEW = {"investigationRef": {"name": "a"}}
RIGHT = {"verdict": "Right"}
CAUSE = {"rootCause": {"kind": "Deployment", "name": "a"}}
TOOL_APPROVAL: dict[str, Any] = {
    "runRef": RUN_REF,
    "call": {"id": "call_1", "server": "deploy", "serverNamespace": "shop", "tool": "scale", "access": "changes"},
    "argumentsDigest": f"sha256:{'a' * 64}",
    "preview": {"kind": "None"},
    "why": {"claim": "a", "evidence": ["b"]},
    "expiresAt": "2026-01-01T00:00:00Z",
    "required": 1,
    "requesters": ["rita"],
}
SKILL = {"description": "Finds out why pods crash."}


def _skill(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": SKILL | {"body": "x"}}


AUTHORS = ({"username": "alice", "groups": ["a"]}, {"username": "alice", "groups": ["a", "b"]})


@dataclass(frozen=True)
class Case:
    """Objects that keep and that break the rule of `model` whose CEL has `fragment`; `old` for rules of transition."""

    model: type[Model]
    fragment: str
    good: dict[str, Any]
    bad: dict[str, Any]
    old: dict[str, Any] | None = None
    id: str = ""

    @property
    def rule(self) -> ValidationRule:
        (found,) = (rule for rule in self.model.RULES if self.fragment in rule.cel)
        return found


def changes(model: type[Model], base: dict[str, Any], values: dict[str, tuple[Any, Any]]) -> list[Case]:
    """For each field, cases of one that stays, changes, is added and is taken away."""
    cases = []
    for field, (one, other) in values.items():
        fragment = f"self.{field} == oldSelf.{field}"
        with_one, with_other = {**base, field: one}, {**base, field: other}
        without = {name: value for name, value in base.items() if name != field}
        cases += [
            Case(model, fragment, with_one, with_other, with_one, "changed"),
            Case(model, fragment, without, with_one, without, "added"),
            Case(model, fragment, with_one, without, with_one, "removed"),
        ]
    return cases


CASES = [
    *(
        case
        for model in (AlertContent, AlertSpec, ScheduledAlert)
        for case in (
            Case(model, "has(self.data) !=", {"alertType": "a", "data": "x"}, {"alertType": "a"}, id="neither"),
            Case(
                model,
                "has(self.data) !=",
                {"alertType": "a", "dataFrom": REF},
                {"alertType": "a", "data": "x", "dataFrom": REF},
                id="both",
            ),
            Case(
                model,
                "size(bytes(",
                {"alertType": "a", "data": "é" * 131_072},
                {"alertType": "a", "data": "é" * 131_072 + "x"},
                id="two bytes each",
            ),
            Case(
                model,
                "size(bytes(",
                {"alertType": "a", "data": "😀" * 65_536},
                {"alertType": "a", "data": "😀" * 65_537},
                id="four bytes each",
            ),
            Case(
                model,
                "matches(",
                {"alertType": "a", "data": "\n x"},
                {"alertType": "a", "data": " \t\r\n"},
                id="white space",
            ),
        )
    ),
    *changes(
        AlertSpec,
        {"alertType": "a", "data": "x"},
        {
            "alertType": ("a", "b"),
            "data": ("x", "y"),
            "dataFrom": (REF, {"configMapKeyRef": {"name": "cm", "key": "other"}}),
            "runbook": ({"inline": "a"}, {"inline": "b"}),
            "chainRef": ({"name": "a"}, {"name": "b"}),
            "mcpServers": ([{"name": "a"}], [{"name": "a", "tools": ["t"]}]),
            "nativeTools": ({"googleSearch": True}, {"googleSearch": False}),
            "incidentKey": ("a", "b"),
            "severity": ("Critical", "Info"),
            "budget": ({"tokens": 1000}, {"tokens": 1001}),
            "author": AUTHORS,
            "reader": AUTHORS,
        },
    ),
    Case(AlertDataSource, "has(self.configMapKeyRef)", REF, {}, id="neither"),
    Case(AlertDataSource, "has(self.configMapKeyRef)", {"record": RECORD}, REF | {"record": RECORD}, id="both"),
    Case(NotifyTarget, "has(self.slack)", {"name": "t", "slack": SLACK}, {"name": "t"}, id="neither"),
    Case(
        NotifyTarget,
        "has(self.slack)",
        {"name": "t", "request": {"url": "https://x", "body": "{}"}},
        {"name": "t", "request": {"url": "https://x", "body": "{}"}, "slack": SLACK},
        id="request and slack",
    ),
    Case(
        NotifyTarget,
        "has(self.slack)",
        {"name": "t", "webhook": WEBHOOK},
        {"name": "t", "slack": SLACK, "webhook": WEBHOOK},
        id="both",
    ),
    Case(RouteAuth, "has(self.basic)", {"hmac": {"secretRef": REF["configMapKeyRef"]}}, {}, id="neither"),
    Case(
        RouteAuth,
        "has(self.basic)",
        {"basic": BASIC},
        {"basic": BASIC, "hmac": {"secretRef": REF["configMapKeyRef"]}},
        id="both",
    ),
    Case(InvestigationSpec, "has(self.alertRef) != ", {"alertRef": {"name": "a"}}, {}, id="neither"),
    Case(
        InvestigationSpec,
        "has(self.alertRef) != ",
        {"alert": {"alertType": "a", "data": "x"}},
        {"alertRef": {"name": "a"}, "alert": {"alertType": "a", "data": "x"}},
        id="both",
    ),
    Case(
        InvestigationSpec,
        "|| !(has(self.alertRef)",
        {"replay": {"of": {"name": "a"}}},
        {"replay": {"of": {"name": "a"}}, "chainRef": {"name": "c"}},
        id="chain beside a replay",
    ),
    Case(
        InvestigationSpec,
        "|| !(has(self.alertRef)",
        {"replay": {"of": {"name": "a"}, "overrides": {"llmProviderRef": {"name": "p"}}}},
        {"replay": {"of": {"name": "a"}}, "llmProviderRef": {"name": "p"}},
        id="provider beside a replay",
    ),
    Case(
        InvestigationSpec,
        "|| !(has(self.alertRef)",
        {"alertRef": {"name": "a"}},
        {"replay": {"of": {"name": "a"}}, "alertRef": {"name": "a"}},
        id="alert beside a replay",
    ),
    *changes(
        InvestigationSpec,
        {"alertRef": {"name": "a"}},
        {
            "replay": ({"of": {"name": "a"}}, {"of": {"name": "b"}}),
            "alertRef": ({"name": "a"}, {"name": "a", "uid": "1"}),
            "alert": ({"alertType": "a", "data": "x"}, {"alertType": "a", "data": "y"}),
            "chainRef": ({"name": "a"}, {"name": "b"}),
            "llmProviderRef": ({"name": "a"}, {"name": "b"}),
            "retryOf": ({"name": "a"}, {"name": "b"}),
            "budget": ({"tokens": 1000}, {"tokens": 1001}),
            "author": AUTHORS,
            "acceptanceTimeoutSeconds": (60, 61),
        },
    ),
    Case(EvidenceDeclaration, "has(self.classes)", {"trustMarks": True}, {"stateTools": ["get"]}, id="nothing"),
    Case(
        ExtractedField,
        "(self.type == 'Enum')",
        {"name": "a", "type": "Enum", "values": ["b"]},
        {"name": "a", "type": "Enum"},
        id="enum without values",
    ),
    Case(
        ExtractedField,
        "(self.type == 'Enum')",
        {"name": "a", "type": "Number"},
        {"name": "a", "type": "Number", "values": ["b"]},
        id="values of a number",
    ),
    Case(
        ExtractedField,
        "!has(self.maxLength)",
        {"name": "a", "type": "Identifier", "maxLength": 128},
        {"name": "a", "type": "Identifier", "maxLength": 129},
        id="long identifier",
    ),
    Case(
        ExtractedField,
        "!has(self.maxLength)",
        {"name": "a", "type": "Quote", "maxLength": 200},
        {"name": "a", "type": "Time", "maxLength": 20},
        id="length of a time",
    ),
    Case(
        QuotaHard,
        "has(self.dollars) || has(self.tokens)",
        {"investigations": 0},
        {},
        id="quota without a limit",
    ),
    *changes(
        AlertScheduleSpec,
        SCHEDULE,
        {
            "template": (SCHEDULE["template"], {"alertType": "b", "data": "x"}),
            "author": AUTHORS,
        },
    ),
    *changes(
        EvalRunSpec,
        EVAL_RUN,
        {
            "suiteRef": ({"name": "a"}, {"name": "b"}),
            "candidate": ({"chainRef": {"name": "a"}}, {"chainRef": {"name": "b"}}),
            "baseline": ({"evalRunRef": {"name": "a"}}, {"evalRunRef": {"name": "b"}}),
            "author": AUTHORS,
        },
    ),
    *changes(
        ReviewSpec,
        REVIEW,
        {"investigationRef": ({"name": "a"}, {"name": "b"}), "author": AUTHORS},
    ),
    Case(
        ReviewSpec, "!has(self.reopen)", REVIEW | {"reopen": True}, REVIEW | RIGHT | {"reopen": True}, id="and-verdict"
    ),
    Case(
        ReviewSpec, "!has(self.reopen)", REVIEW | RIGHT | {"reopen": False}, REVIEW | RIGHT | {"reopen": True}, id="not"
    ),
    Case(ReviewSpec, "|| has(self.verdict)", REVIEW | RIGHT | CAUSE, REVIEW | CAUSE, id="without-verdict"),
    *changes(
        ToolApprovalSpec,
        TOOL_APPROVAL,
        {
            "runRef": (RUN_REF, RUN_REF | {"uid": "2"}),
            "call": (TOOL_APPROVAL["call"], TOOL_APPROVAL["call"] | {"tool": "delete"}),
            "argumentsDigest": (f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"),
            "arguments": ("{}", '{"replicas": 0}'),
            "targets": ([], [CHANGED]),
            "preview": ({"kind": "None"}, {"kind": "Read"}),
            "undo": ({"note": "a"}, {"tool": "scale", "arguments": "{}"}),
            "undoes": ("a", "b"),
            "why": ({"claim": "a", "evidence": ["b"]}, {"claim": "c", "evidence": ["b"]}),
            "provenance": ([], [{"argument": "/url", "origins": ["A"]}]),
            "expiresAt": ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
            "required": (2, 1),
            "requesters": (["rita"], ["ben"]),
        },
    ),
    Case(
        ToolApprovalSpec,
        "oldSelf.decisions.all(",
        {**TOOL_APPROVAL, "decisions": [DECISION, DECISION | {"username": "ben"}]},
        {**TOOL_APPROVAL, "decisions": [DECISION | {"decision": "Reject"}]},
        {**TOOL_APPROVAL, "decisions": [DECISION]},
        "edited decision",
    ),
    Case(
        ToolApprovalSpec,
        "self.decisions.all(one,",
        {**TOOL_APPROVAL, "decisions": [DECISION, DECISION | {"username": "rita", "decision": "Reject"}]},
        {**TOOL_APPROVAL, "decisions": [DECISION, DECISION | {"username": "rita"}]},
        {**TOOL_APPROVAL, "decisions": [DECISION]},
        "requester approves",
    ),
    Case(
        EvalRunSpec,
        "oldSelf.desiredState ==",
        {**EVAL_RUN, "desiredState": "Cancelled"},
        {**EVAL_RUN, "desiredState": "Running"},
        {**EVAL_RUN, "desiredState": "Cancelled"},
        "cancelled to running",
    ),
    Case(
        EvalSuiteSpec,
        "!has(self.scoring)",
        {"scoring": SCORED, "judge": {"llmProviderRef": {"name": "a"}, "checklist": [{"name": "a", "question": "b"}]}},
        {"scoring": SCORED},
        id="no-judge",
    ),
    Case(CaseSource, "has(self.investigationRef)", {"investigationRef": {"name": "a"}}, {}, id="neither"),
    Case(CaseSource, "has(self.investigationRef)", REF, {"investigationRef": {"name": "a"}, **REF}, id="both"),
    Case(CaseSource, "has(self.investigationRef)", GIT, {**REF, **GIT}, id="git-and-another"),
    Case(CaseLimits, "has(self.costUSD) ||", {"steps": 1}, {}, id="neither"),
    Case(
        Expectation,
        "has(self.rootCause) || has(self.distractors)",
        {"verdict": "Cause"},
        {"noConfidentWrong": True},
        id="nothing",
    ),
    Case(
        Expectation,
        "self.verdict == 'Cause'",
        {"rootCause": {"entities": ["checkout"]}, "verdict": "Cause"},
        {"rootCause": {"entities": ["checkout"]}, "verdict": "NoFault"},
        id="cause of no fault",
    ),
    Case(Replay, "has(self.evalCase) ? 1", {"of": {"name": "a"}}, {}, id="none"),
    Case(
        Replay,
        "has(self.evalCase) ? 1",
        {"evalCase": EVAL_CASE},
        {"of": {"name": "a"}, "evalCase": EVAL_CASE},
        id="two",
    ),
    Case(
        InvestigationSpec,
        "!has(self.replay) || !(",
        {"replay": {"of": {"name": "a"}}},
        {"replay": {"of": {"name": "a"}}, "chainRef": {"name": "b"}},
        id="replay of another chain",
    ),
    Case(
        Promotion,
        "self.policy != 'WhenPassed'",
        {"policy": "WhenPassed", "suiteRef": {"name": "a"}},
        {"policy": "WhenPassed"},
        id="no suite",
    ),
    *changes(
        ChatMessageSpec,
        {"investigationRef": {"name": "i"}, "question": "why?"},
        {"investigationRef": ({"name": "i"}, {"name": "j"}), "question": ("why?", "how?"), "author": AUTHORS},
    ),
    Case(
        ChatMessageSpec,
        "has(self.via)",
        {"investigationRef": {"name": "i"}, "question": "why?", "via": "Slack"},
        {"investigationRef": {"name": "i"}, "question": "why?"},
        {"investigationRef": {"name": "i"}, "question": "why?", "via": "Slack"},
        "left out",
    ),
    *(
        Case(
            model,
            "oldSelf.desiredState ==",
            {**base, "desiredState": good},
            {**base, "desiredState": bad},
            {**base, "desiredState": old},
            f"{old} to {bad}",
        )
        for model, base in (
            (InvestigationSpec, {"alertRef": {"name": "a"}}),
            (ChatMessageSpec, {"investigationRef": {"name": "i"}, "question": "why?"}),
        )
        for old, good, bad in (
            ("Concluded", "Cancelled", "Running"),
            ("Concluded", "Concluded", "Running"),
            ("Cancelled", "Cancelled", "Concluded"),
            ("Cancelled", "Cancelled", "Running"),
        )
    ),
    Case(Runbook, "== 1", {"inline": "x"}, {}, id="none"),
    Case(Runbook, "== 1", REF, {"inline": "x", "url": "https://runbooks.example/a"}, id="two"),
    Case(Runbook, "== 1", {"url": "https://runbooks.example/a"}, {**REF, "inline": "x"}, id="another two"),
    Case(LocalRunbook, "== 1", {"inline": "x"}, {}, id="none"),
    Case(LocalRunbook, "== 1", REF, {**REF, "inline": "x"}, id="both"),
    Case(LocalRunbook, "== 1", GIT, {**GIT, "inline": "x"}, id="git and inline"),
    Case(Runbook, "== 1", GIT, {**GIT, "url": "https://runbooks.example/a"}, id="git and url"),
    Case(
        Stage,
        "self.replicas == 1 ||",
        {"name": "s", "agents": [{"name": "a"}], "replicas": 3},
        {"name": "s", "agents": [{"name": "a"}, {"name": "b"}], "replicas": 2},
        id="replicas of several",
    ),
    Case(
        Stage,
        "self.replicas == 1 ||",
        {"name": "s", "agents": [{"name": "a"}, {"name": "b"}], "replicas": 1},
        {"name": "s", "agents": [{"name": "a"}, {"name": "a"}], "replicas": 10},
        id="several once",
    ),
    Case(
        StageAgent,
        "!has(self.subAgentLimits) ||",
        {"name": "a", "subAgents": [SUB_AGENT], "subAgentLimits": {"concurrent": 1}},
        {"name": "a", "subAgentLimits": {"concurrent": 1}},
        id="limits without sub-agents",
    ),
    Case(
        StageAgent,
        "exists_one",
        {"name": "a", "subAgents": [SUB_AGENT, {"agentRef": {"name": "c"}}]},
        {"name": "a", "subAgents": [SUB_AGENT, SUB_AGENT]},
        id="a sub-agent twice",
    ),
    Case(
        StageAgent,
        "one.maxDispatches <=",
        {"name": "a", "subAgents": [SUB_AGENT | {"maxDispatches": 10}]},
        {"name": "a", "subAgents": [SUB_AGENT | {"maxDispatches": 11}]},
        id="more dispatches than the default",
    ),
    Case(
        StageAgent,
        "one.maxDispatches <=",
        {"name": "a", "subAgents": [SUB_AGENT | {"maxDispatches": 2}], "subAgentLimits": {"dispatches": 2}},
        {"name": "a", "subAgents": [SUB_AGENT | {"maxDispatches": 3}], "subAgentLimits": {"dispatches": 2}},
        id="more dispatches than the limit",
    ),
    Case(Stage, "size(self.agents) > 0", OF_AGENTS, {"name": "s", "kind": "Agents"}, id="no agents"),
    Case(Stage, "size(self.agents) > 0", CHANGES, OF_AGENTS | {"agents": []}, id="an empty list"),
    Case(
        Stage,
        "!(has(self.kind) && self.kind == 'Changes')",
        CHANGES | {"agents": [], "changes": {"serviceAccountName": "a"}},
        CHANGES | {"agents": [{"name": "a"}]},
        id="agents of a stage without",
    ),
    *(
        Case(
            Stage,
            "!(has(self.kind) && self.kind == 'Changes')",
            OF_AGENTS | {field: value},
            CHANGES | {field: value},
            id=f"{field} of a stage without agents",
        )
        for field, value in (
            ("replicas", 2),
            ("successPolicy", "Any"),
            ("maxIterations", 3),
            ("mcpServers", [{"name": "kube"}]),
            ("fallback", [{"llmProvider": "other"}]),
            ("synthesis", {"agent": "b"}),
        )
    ),
    *(
        Case(
            Stage,
            "!(has(self.kind) && self.kind == 'Action')",
            OF_AGENTS | {field: value},
            ACTION | {field: value},
            id=f"{field} of a stage of kind Action",
        )
        for field, value in (
            ("replicas", 2),
            ("agents", [{"name": "a"}, {"name": "b"}]),
            ("synthesis", {"agent": "b"}),
        )
    ),
    Case(
        ChainSpec,
        "self.stages[0].kind != 'Action'",
        {"stages": [OF_AGENTS, ACTION | {"name": "t"}]},
        {"stages": [ACTION]},
        id="an action without a finding",
    ),
    Case(
        Stage,
        "!has(self.changes)",
        CHANGES | {"changes": {"stopWhen": "Certain"}},
        OF_AGENTS | {"changes": {}},
        id="changes of agents",
    ),
    Case(
        AllowedNamespaces,
        "self.selector",
        {"from": "Selector", "selector": {"matchLabels": {"team": "sre"}}},
        {"from": "Selector"},
        id="no selector",
    ),
    Case(
        AllowedNamespaces,
        "self.selector",
        {"from": "All"},
        {"from": "All", "selector": {"matchLabels": {"team": "sre"}}},
        id="selector that does not count",
    ),
    Case(
        LabelRequirement,
        "self.values",
        {"key": "team", "operator": "In", "values": ["sre"]},
        {"key": "team", "operator": "NotIn"},
        id="no values",
    ),
    Case(
        LabelRequirement,
        "self.values",
        {"key": "team", "operator": "Exists"},
        {"key": "team", "operator": "DoesNotExist", "values": ["sre"]},
        id="values that do not count",
    ),
    *(
        case
        for model in (EnvVar, Header)
        for case in (
            Case(model, "self.valueFrom", {"name": "A", "value": ""}, {"name": "A"}, id="neither"),
            Case(
                model,
                "self.valueFrom",
                {"name": "A", "valueFrom": SECRET},
                {"name": "A", "value": "x", "valueFrom": SECRET},
                id="both",
            ),
        )
    ),
    Case(
        Transport,
        "self.stdio",
        {"type": "stdio", "stdio": {"command": "x"}},
        {"type": "stdio", "http": HTTP},
        id="the other",
    ),
    Case(
        Transport,
        "self.stdio",
        {"type": "http", "http": HTTP},
        {"type": "http", "http": HTTP, "stdio": {"command": "x"}},
        id="both",
    ),
    Case(Transport, "self.stdio", {"type": "sse", "http": HTTP}, {"type": "sse", "stdio": {"command": "x"}}, id="sse"),
    *(
        Case(MCPServerSpec, "has(self.run) !=", good, bad, id=why)
        for why, good, bad in (
            ("neither", {"transport": {"type": "http", "http": HTTP}}, {"transport": {"type": "http"}}),
            (
                "no command",
                {"transport": {"type": "stdio", "stdio": {"command": "x"}}},
                {"transport": {"type": "stdio"}},
            ),
            ("url beside run", RUN_HTTP, RUN_HTTP | {"transport": {"type": "http", "http": HTTP}}),
            ("command beside run", RUN_STDIO, RUN_STDIO | {"transport": {"type": "stdio", "stdio": {"command": "x"}}}),
        )
    ),
    *(
        Case(MCPServerSpec, "!has(self.run) ||", good, good | {"run": run}, id=why)
        for why, good, run in (
            ("stdio without command", RUN_STDIO, {"image": "tools"}),
            ("stdio with port", RUN_STDIO, {"image": "tools", "command": ["x"], "port": 8080}),
            ("http without port", RUN_HTTP, {"image": "tools"}),
        )
    ),
    Case(MCPServerSpec, "!has(self.run) ||", RUN_HTTP, RUN_HTTP | {"transport": {"type": "sse"}}, id="sse"),
    Case(TargetDeclaration, "has(self.object) !=", {"tools": ["a"], "object": "{}"}, {"tools": ["a"]}, id="neither"),
    Case(
        TargetDeclaration,
        "has(self.object) !=",
        {"tools": ["a"], "manifestArgument": "a"},
        {"tools": ["a"], "object": "{}", "manifestArgument": "a"},
        id="both",
    ),
    Case(CaSource, "configMapKeyRef", REF, {}, id="neither"),
    Case(CaSource, "configMapKeyRef", SECRET, REF | SECRET, id="both"),
    Case(
        Http,
        "self.tls",
        HTTP | {"tls": {"caFrom": REF}},
        {"url": "http://tools.example/mcp", "tls": {"caFrom": REF}},
        id="tls without https",
    ),
    *(
        Case(
            Http,
            "!has(self.bearerTokenSecretRef) || !has(self.headers)",
            HTTP | {"bearerTokenSecretRef": SECRET["secretKeyRef"], "headers": [{"name": "X-Tenant", "value": "a"}]},
            HTTP | {"bearerTokenSecretRef": SECRET["secretKeyRef"], "headers": [{"name": name, "value": "a"}]},
            id=name,
        )
        for name in ("Authorization", "authorization", "AUTHORIZATION")
    ),
    Case(
        Http,
        "!has(self.bearerTokenSecretRef) || !has(self.headers)",
        HTTP | {"headers": [{"name": "Authorization", "value": "a"}]},
        HTTP
        | {
            "bearerTokenSecretRef": SECRET["secretKeyRef"],
            "headers": [{"name": "X-Tenant", "value": "a"}, {"name": "Authorization", "value": "a"}],
        },
        id="among others",
    ),
    Case(
        Http,
        "!has(self.tokenAudience) || !has(self.bearerTokenSecretRef)",
        HTTP | {"tokenAudience": "tools"},
        HTTP | {"tokenAudience": "tools", "bearerTokenSecretRef": SECRET["secretKeyRef"]},
        id="two tokens",
    ),
    *(
        Case(
            Http,
            "!has(self.tokenAudience) || !has(self.headers)",
            HTTP | {"tokenAudience": "tools", "headers": [{"name": "X-Tenant", "value": "a"}]},
            HTTP
            | {"tokenAudience": "tools", "headers": [{"name": "X-Tenant", "value": "a"}, {"name": name, "value": "a"}]},
            id=f"token and {name}",
        )
        for name in ("Authorization", "authorization")
    ),
    *(
        Case(Run, "self.kubeconfig", good, bad, id=id_)
        for good, bad, id_ in (
            (RUN_ACTING, RUN_ACTING | {"serviceAccountName": "own"}, "two accounts"),
            (
                RUN_ACTING | {"kubeconfig": False, "serviceAccountName": "own"},
                RUN_ACTING | {"scope": "Shared"},
                "shared",
            ),
            ({"image": "tools"}, {"image": "tools", "kubeconfig": True}, "shared by default"),
        )
    ),
    *(
        Case(
            MCPServer,
            "self.metadata.name",
            {"metadata": {"name": "m" * 40}, "spec": {"transport": {"type": "http", "http": HTTP}}},
            {"metadata": {"name": name}, "spec": {"transport": {"type": "http", "http": HTTP}}},
            id=id_,
        )
        for name, id_ in (("m" * 41, "too long"), ("my.server", "dot"))
    ),
    *(
        Case(Thinking, "self.budget", good, bad, id=id_)
        for good, bad, id_ in (
            ({"budget": -1}, {}, "none"),
            ({"level": "low"}, {"level": "low", "budget": 0}, "two"),
            ({"effort": "high"}, {"effort": "high", "level": "low"}, "other two"),
        )
    ),
    Case(
        LLMProviderSpec,
        "openai-native",
        {"type": "openai", "model": "m", "backend": "openai-native"},
        {"type": "google", "model": "m", "backend": "openai-native"},
        id="other type",
    ),
    Case(
        LLMProviderSpec,
        "has(self.vertexai) == (",
        VERTEX | {"apiKeySecretRef": {"name": "s", "key": "k"}},
        {"type": "vertexai", "model": "m"},
        id="no project",
    ),
    Case(
        LLMProviderSpec,
        "has(self.vertexai) == (",
        {"type": "google", "model": "m"},
        VERTEX | {"type": "google", "baseURL": "https://a"},
        id="project of another type",
    ),
    *(
        Case(LLMProviderSpec, "== 'WorkloadIdentity'", VERTEX | good, VERTEX, id=id_)
        for good, id_ in (
            ({"apiKeySecretRef": {"name": "s", "key": "k"}}, "no key"),
            ({"baseURL": "https://a"}, "no key for Google"),
            ({"vertexai": {"project": "p", "credentials": "WorkloadIdentity"}}, "nobody"),
        )
    ),
    *(
        Case(LLMProviderSpec, "!= 'WorkloadIdentity'", KEYLESS, KEYLESS | bad, id=id_)
        for bad, id_ in (
            ({"apiKeySecretRef": {"name": "s", "key": "k"}}, "two identities"),
            ({"baseURL": "https://a"}, "identity elsewhere"),
        )
    ),
    Case(
        InvestigationDefaults,
        "self.metadata.name",
        {"metadata": {"name": "default"}, "spec": {}},
        {"metadata": {"name": "defaults"}, "spec": {}},
        id="other name",
    ),
    Case(SkillSpec, "(has(self.body) ?", SKILL | {"body": "x"}, SKILL, id="no text"),
    Case(SkillSpec, "(has(self.body) ?", SKILL | REF, SKILL | REF | {"body": "x"}, id="two texts"),
    Case(SkillSpec, "(has(self.body) ?", SKILL | GIT, SKILL | GIT | REF, id="two others"),
    Case(
        SkillSpec,
        "size(bytes(self.body))",
        SKILL | {"body": "é" * 32_768},
        SKILL | {"body": "é" * 32_768 + "a"},
        id="bytes, not characters",
    ),
    Case(SkillSpec, "self.body.matches(", SKILL | {"body": " x"}, SKILL | {"body": " \n"}, id="blank text"),
    *(
        Case(AppliesTo, "has(self.alertTypes)", {field: value}, {field: type(value)()}, id=field)
        for field, value in (("alertTypes", ["a"]), ("namespaces", ["n"]), ("workloadLabels", {"app": "x"}))
    ),
    *(
        Case(Skill, "self.metadata.name", _skill("pod-crashes"), _skill(bad), id=f"name {bad[:12]}")
        for bad in ("a" * 65, "a--b", "a.b", "Pods"[1:] + ".")
    ),
]
