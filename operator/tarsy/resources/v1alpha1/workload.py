"""What an MCPServer has run for it in the cluster: `spec.run`.

Decision: one container of one image. A server that speaks stdio is started in it by `tarsy mcp-gateway`, so its image
holds that program too; one that speaks streamable HTTP itself is started as it is.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.schema import ENV_NAME, IMAGE, QUANTITY, Model, ObjectName, Rule, Unique
from tarsy.resources.v1alpha1.common import SecretSource

VALUE_OR_SECRET = Rule(
    "has(self.value) != has(self.valueFrom)",
    "set exactly one of value and valueFrom.secretKeyRef",
    lambda self: (self.value is None) != (self.value_from is None),
)


class EnvVar(Model):
    """An environment variable."""

    RULES: ClassVar[tuple[Rule, ...]] = (VALUE_OR_SECRET,)

    name: Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=ENV_NAME)] = Field(
        description="Name of the variable."
    )
    value: Annotated[str, StringConstraints(max_length=8192)] | None = Field(default=None, description="Its value.")
    value_from: SecretSource | None = Field(default=None, description="Where its value comes from.")


Quantity = Annotated[str, StringConstraints(min_length=1, max_length=32, pattern=QUANTITY)]


class Amounts(Model):
    """Amounts of what a node has, as Kubernetes writes them (500m, 128Mi)."""

    cpu: Quantity | None = Field(default=None, description="Processors.")
    memory: Quantity | None = Field(default=None, description="Memory.")


class ComputeResources(Model):
    """What a container is promised, and what it may take at most."""

    requests: Amounts = Field(default=Amounts(cpu="20m", memory="64Mi"), description="What it is promised.")
    limits: Amounts = Field(default=Amounts(memory="512Mi"), description="What it may take at most.")


class Run(Model):
    """A workload in the namespace of the object that is the server: made, reached and removed by the operator."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.kubeconfig) || !self.kubeconfig || (has(self.scope) && self.scope == 'PerRun' "
            "&& !has(self.serviceAccountName))",
            "kubeconfig needs scope: PerRun and no serviceAccountName: it acts as the ServiceAccount of the agent that "
            "uses it; set the scope, and leave one of the two out",
            lambda self: not self.kubeconfig or (self.scope == "PerRun" and self.service_account_name is None),
            field="kubeconfig",
        ),
    )

    image: Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=IMAGE)] = Field(
        description="The image; with transport.type stdio one that holds `tarsy mcp-gateway` too."
    )
    command: (
        Annotated[tuple[Annotated[str, StringConstraints(max_length=4096)], ...], Field(min_length=1, max_length=64)]
        | None
    ) = Field(default=None, description="The program; that of the image when not set (transport.type http only).")
    args: tuple[Annotated[str, StringConstraints(max_length=4096)], ...] = Field(
        default=(), max_length=64, description="Its arguments."
    )
    env: Annotated[tuple[EnvVar, ...], Unique("name")] = Field(
        default=(), max_length=64, description="Its environment; a server that speaks stdio gets this and PATH only."
    )
    resources: ComputeResources = Field(default=ComputeResources(), description="What its container gets of a node.")
    service_account_name: ObjectName | None = Field(
        default=None,
        description="The ServiceAccount that it is, of the same namespace, whoever uses it; without one it has no "
        "token of Kubernetes, but with kubeconfig that of an agent's account.",
    )
    scope: Literal["Shared", "PerRun"] = Field(
        default="Shared",
        description="Shared: one for all who use it, all the time, which acts as nobody else than itself; PerRun: one "
        "for each run, with a token of its own, gone at the end of the run, which may act as an agent (kubeconfig).",
    )
    kubeconfig: bool = Field(
        default=False,
        description="Whether it gets a kubeconfig (named by KUBECONFIG) as the ServiceAccount of the Agent that uses "
        "it (spec.serviceAccountName of the Agent); an Agent without one cannot use it. With scope PerRun only: each "
        "run has one workload for each such account. It must be in the namespace of the investigation or in the "
        "library's.",
    )
    port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="Where it listens, for transport.type http; its path is /mcp."
    )
