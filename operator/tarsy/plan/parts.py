"""Converts provider and server objects into their parts of a plan.

Decision: a Secret is named together with the namespace of the object that names it, because that is the only
namespace it may come from, wherever the run is.
"""

from __future__ import annotations

from collections.abc import Iterable

from tarsy.plan.model import (
    ApprovalPlan,
    CallLimits,
    ConfigMapKey,
    CustomMask,
    DataFlowPlan,
    DryRunRule,
    EvidencePlan,
    EvidenceRule,
    ExtractedFieldPlan,
    ExtractionRulePlan,
    HttpTransport,
    MaskingPlan,
    ObjectRef,
    OutboundRule,
    PinPlan,
    PlannedRates,
    PlannedThinking,
    ProviderPlan,
    ReachPlan,
    SecretKey,
    ServerPlan,
    StdioTransport,
    SummarizationPlan,
    TargetRule,
    UndoRule,
    Value,
    Vertex,
    WorkloadTransport,
)
from tarsy.plan.policy import stricter
from tarsy.plan.rates import bundled
from tarsy.plan.reach import reach_message, reach_plan
from tarsy.record.integrity import Integrity
from tarsy.resources.v1alpha1.approval_settings import ApprovalSettings
from tarsy.resources.v1alpha1.common import McpSelection, SecretKeyRef
from tarsy.resources.v1alpha1.data_flow import DataFlow
from tarsy.resources.v1alpha1.evidence import EvidenceDeclaration
from tarsy.resources.v1alpha1.extraction import IDENTIFIER_LENGTH, QUOTE_LENGTH, ExtractionRule
from tarsy.resources.v1alpha1.llm_provider import LLMProvider
from tarsy.resources.v1alpha1.masking import Masking
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.resources.v1alpha1.transport import CaSource, Header
from tarsy.resources.v1alpha1.workload import EnvVar


def provider_plan(provider: LLMProvider, ref: ObjectRef) -> ProviderPlan:
    """The plan's part for a provider; `ref` is the provider as it is now."""
    spec = provider.spec
    return ProviderPlan(
        ref=ref,
        type=spec.type,
        model=spec.model,
        base_url=spec.base_url,
        vertexai=Vertex(
            project=spec.vertexai.project,
            location=spec.vertexai.location,
            own_identity=spec.vertexai.credentials == "WorkloadIdentity",
        )
        if spec.vertexai
        else None,
        api_key=_secret(spec.api_key_secret_ref, ref.namespace) if spec.api_key_secret_ref else None,
        temperature=spec.temperature,
        max_output_tokens=spec.max_output_tokens,
        context_window=spec.context_window,
        thinking=PlannedThinking(budget=spec.thinking.budget, level=spec.thinking.level, effort=spec.thinking.effort)
        if spec.thinking
        else None,
        cache_marks=spec.prompt_caching != "Disabled",
        rates=PlannedRates(
            input=spec.rates.input_per_million,
            output=spec.rates.output_per_million,
            cached=spec.rates.cached_input_per_million,
        )
        if spec.rates
        else bundled(spec.type, spec.model, spec.base_url),
        limits=CallLimits(
            max_concurrent=spec.limits.max_concurrent,
            requests_per_minute=spec.limits.requests_per_minute,
            tokens_per_minute=spec.limits.tokens_per_minute,
        )
        if spec.limits
        else None,
    )


def server_plan(
    server: MCPServer, ref: ObjectRef, selection: McpSelection, reach: ReachPlan | None = None
) -> ServerPlan:
    """Returns the plan's part for a server.

    Its policy is the server's own, which the agent's may make stricter.

    Args:
        server: the server.
        ref: the server as it is now.
        selection: the tools that are selected.
        reach: the namespaces that it can reach; None outside of runs: as its own namespace uses it.
    """
    spec = server.spec
    reach = reach or reach_plan(server, ref.namespace, {})
    return ServerPlan(
        ref=ref,
        name=ref.name,
        transport=_transport(server),
        instructions=reach_message(server, reach),
        selected=selection.tools or (),
        allow=spec.tools.allow or (),
        deny=spec.tools.deny,
        repeatable=spec.repeatable_tools,
        policy=stricter(spec.tool_policy),
        read_only=spec.tools.read_only,
        destructive=spec.tools.destructive,
        trust_annotations=spec.trust_annotations,
        masking=masking_plan(spec.masking),
        summarization=SummarizationPlan(
            enabled=spec.summarization.enabled,
            threshold_tokens=spec.summarization.threshold_tokens,
            summary_tokens=spec.summarization.summary_tokens,
        ),
        init_seconds=spec.timeouts.init_seconds,
        call_seconds=spec.timeouts.call_seconds,
        reach=reach,
        evidence=_evidence(spec.evidence),
        pin=_pinned(server),
        approval=_approval(spec.approval),
        data_flow=_data_flow(spec.data_flow),
        extraction=tuple(_extraction(rule) for rule in spec.extraction),
    )


def _approval(declared: ApprovalSettings | None) -> ApprovalPlan | None:
    if declared is None:
        return None
    booleans = {"true": True, "false": False}
    return ApprovalPlan(
        required=2 if declared.required == 2 else 1,
        targets=tuple(
            TargetRule(tools=one.tools, object=one.object, manifest=one.manifest_argument, change=one.change)
            for one in declared.targets
        ),
        undetermined=declared.undetermined or "Refuse",
        git_ops=declared.git_ops or "Refuse",
        dry_run=tuple(
            DryRunRule(tools=one.tools, argument=one.argument, value=booleans.get(one.value, one.value))
            for one in declared.dry_run
        ),
        undo=tuple(UndoRule(tools=one.tools, tool=one.tool, arguments=one.arguments) for one in declared.undo),
    )


def _pinned(server: MCPServer) -> PinPlan | None:
    """Returns the tools that may be used; none of a server whose tools the operator has not seen yet."""
    if server.spec.pin is None:
        return None
    known = server.status.pinned_tools
    return PinPlan(trusted=tuple((tool.name, tool.digest) for tool in known if tool.state == "Trusted" and tool.digest))


def _evidence(declared: EvidenceDeclaration | None) -> EvidencePlan | None:
    if declared is None:
        return None
    return EvidencePlan(
        rules=tuple(EvidenceRule(tools=rule.tools, integrity=Integrity(rule.integrity)) for rule in declared.classes),
        trust_marks=declared.trust_marks,
        state_tools=declared.state_tools,
    )


def _data_flow(declared: DataFlow | None) -> DataFlowPlan:
    if declared is None:
        return DataFlowPlan()
    rules = (
        OutboundRule(tools=rule.tools, arguments=rule.arguments, address=rule.holds == "Address")
        for rule in declared.outbound_arguments
    )
    return DataFlowPlan(outbound=tuple(rules), sensitive=declared.sensitive_tools)


def _extraction(declared: ExtractionRule) -> ExtractionRulePlan:
    fields = (
        ExtractedFieldPlan(
            name=field.name,
            type=field.type,
            values=field.values or (),
            longest=field.max_length or (QUOTE_LENGTH if field.type == "Quote" else IDENTIFIER_LENGTH),
            max_items=field.max_items,
            description=field.description or "",
        )
        for field in declared.fields
    )
    return ExtractionRulePlan(tools=declared.tools, fields=tuple(fields))


def masking_plan(masking: Masking) -> MaskingPlan:
    """The plan's part for a masking setting."""
    return MaskingPlan(
        enabled=masking.enabled,
        groups=masking.pattern_groups,
        patterns=masking.patterns,
        custom=tuple(
            CustomMask(name=own.name, pattern=own.pattern, replacement=own.replacement)
            for own in masking.custom_patterns
        ),
    )


def _transport(server: MCPServer) -> StdioTransport | HttpTransport | WorkloadTransport:
    transport, namespace = server.spec.transport, server.metadata.namespace
    if server.spec.run is not None:
        return WorkloadTransport(
            namespace=namespace,
            server=server.metadata.name,
            per_run=server.spec.run.scope == "PerRun",
            kubeconfig=server.spec.run.kubeconfig,
        )
    if transport.stdio is not None:
        stdio = transport.stdio
        return StdioTransport(
            command=stdio.command, args=stdio.args, env=_values(stdio.env, namespace), kubeconfig=stdio.kubeconfig
        )
    if transport.http is not None:
        token = transport.http.bearer_token_secret_ref
        return HttpTransport(
            type="sse" if transport.type == "sse" else "http",
            url=transport.http.url,
            headers=_values(transport.http.headers, namespace),
            bearer_token=Value(name="bearerTokenSecretRef", secret=_secret(token, namespace)) if token else None,
            token_audience=transport.http.token_audience,
            ca=_ca(transport.http.tls.ca_from, namespace) if transport.http.tls else None,
        )
    raise ValueError(f"{server}: spec.transport: neither stdio nor http")  # its own rule forbids it


def _values(items: Iterable[EnvVar | Header], namespace: str) -> tuple[Value, ...]:
    return tuple(
        Value(
            name=item.name,
            value=item.value,
            secret=_secret(item.value_from.secret_key_ref, namespace) if item.value_from else None,
        )
        for item in items
    )


def _ca(source: CaSource, namespace: str) -> Value:
    if source.config_map_key_ref is not None:
        ref = source.config_map_key_ref
        return Value(name="tls.caFrom", config_map=ConfigMapKey(namespace=namespace, name=ref.name, key=ref.key))
    if source.secret_key_ref is not None:
        return Value(name="tls.caFrom", secret=_secret(source.secret_key_ref, namespace))
    raise ValueError("tls.caFrom: neither configMapKeyRef nor secretKeyRef")  # its own rule forbids it


def _secret(ref: SecretKeyRef, namespace: str) -> SecretKey:
    return SecretKey(namespace=namespace, name=ref.name, key=ref.key)
