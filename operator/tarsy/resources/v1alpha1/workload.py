"""Workload that the operator runs for an MCPServer in the cluster: `spec.run`.

Decision: the image needs nothing of ours. A server that speaks stdio is started in its container by `tarsy-launcher`,
which the pod gets from our image; `tarsy mcp-gateway` serves it from a container beside it. A server that speaks
streamable HTTP is started as it is.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.schema import ENV_NAME, IMAGE, QUANTITY, Model, ObjectName, Unique, ValidationRule
from tarsy.resources.v1alpha1.common import SecretSource

VALUE_OR_SECRET = ValidationRule(
    "has(self.value) != has(self.valueFrom)",
    "set exactly one of value and valueFrom.secretKeyRef",
    lambda self: (self.value is None) != (self.value_from is None),
)


class EnvVar(Model):
    """An environment variable."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (VALUE_OR_SECRET,)

    name: Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=ENV_NAME)] = Field(
        description="Name of the variable."
    )
    value: Annotated[str, StringConstraints(max_length=8192)] | None = Field(default=None, description="Literal value.")
    value_from: SecretSource | None = Field(default=None, description="Source of the value.")


Quantity = Annotated[str, StringConstraints(min_length=1, max_length=32, pattern=QUANTITY)]


class Amounts(Model):
    """Resource quantities, as in Kubernetes (500m, 128Mi)."""

    cpu: Quantity | None = Field(default=None, description="Processors.")
    memory: Quantity | None = Field(default=None, description="Memory.")


class ComputeResources(Model):
    """Resource requests and limits of a container."""

    requests: Amounts = Field(
        default=Amounts(cpu="20m", memory="64Mi"), description="Resources reserved for the container."
    )
    limits: Amounts = Field(default=Amounts(memory="512Mi"), description="Maximum resources of the container.")


class Run(Model):
    """A workload that the operator runs for the server, in the namespace of this object."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "!has(self.kubeconfig) || !self.kubeconfig || (has(self.scope) && self.scope == 'PerRun' "
            "&& !has(self.serviceAccountName))",
            "kubeconfig needs scope: PerRun and no serviceAccountName: it acts as the ServiceAccount of the agent "
            "that uses it; set the scope, and leave one of the two out",
            lambda self: not self.kubeconfig or (self.scope == "PerRun" and self.service_account_name is None),
            field="kubeconfig",
        ),
    )

    image: Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=IMAGE)] = Field(
        description="Container image of the server. It needs no part of TARSy and no shell."
    )
    command: (
        Annotated[tuple[Annotated[str, StringConstraints(max_length=4096)], ...], Field(min_length=1, max_length=64)]
        | None
    ) = Field(
        default=None,
        description="Command to run. Required for transport.type stdio, where it speaks MCP over stdin and stdout "
        "(see ENTRYPOINT and CMD of the image). Defaults to the command of the image for transport.type http.",
    )
    args: tuple[Annotated[str, StringConstraints(max_length=4096)], ...] = Field(
        default=(), max_length=64, description="Arguments of the command."
    )
    env: Annotated[tuple[EnvVar, ...], Unique("name")] = Field(
        default=(), max_length=64, description="Environment variables, in addition to those of the image."
    )
    resources: ComputeResources = Field(
        default=ComputeResources(), description="Resource requests and limits of the container."
    )
    service_account_name: ObjectName | None = Field(
        default=None,
        description="ServiceAccount of the workload, in the same namespace, regardless of which agent uses it. "
        "If not set, the workload gets no Kubernetes token, except the one of the agent's account "
        "with kubeconfig.",
    )
    scope: Literal["Shared", "PerRun"] = Field(
        default="Shared",
        description="Shared: one permanent workload for all runs, which acts only as itself. PerRun: one "
        "workload per run, with its own token, deleted when the run ends. It can act as an agent "
        "(kubeconfig).",
    )
    kubeconfig: bool = Field(
        default=False,
        description="Whether the workload gets a kubeconfig (in KUBECONFIG) for the ServiceAccount of the Agent "
        "that uses it (spec.serviceAccountName of the Agent). An Agent without one cannot use it. "
        "Requires scope PerRun: each run has one workload per account. The account must be in the "
        "namespace of the investigation or of the library.",
    )
    port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="Port on which the server listens, for transport.type http. The path is /mcp."
    )
