"""Connection to a tool server: `MCPServer.spec.transport`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.schema import (
    AUDIENCE,
    HEADER_NAME,
    HEADER_VALUE,
    HttpUrl,
    Model,
    Unique,
    ValidationRule,
)
from tarsy.resources.v1alpha1.common import (
    ConfigMapKeyRef,
    SecretKeyRef,
    SecretSource,
)
from tarsy.resources.v1alpha1.workload import VALUE_OR_SECRET, EnvVar


class Header(Model):
    """An HTTP header."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (VALUE_OR_SECRET,)

    name: Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=HEADER_NAME)] = Field(
        description="Name of the header."
    )
    value: Annotated[str, StringConstraints(max_length=8192, pattern=HEADER_VALUE)] | None = Field(
        default=None, description="Literal value."
    )
    value_from: SecretSource | None = Field(default=None, description="Source of the value.")


class Stdio(Model):
    """A command that speaks MCP over its standard input and output."""

    command: Annotated[str, StringConstraints(min_length=1, max_length=1024)] = Field(description="Command to run.")
    args: tuple[Annotated[str, StringConstraints(max_length=4096)], ...] = Field(
        default=(), max_length=64, description="Arguments of the command."
    )
    env: Annotated[tuple[EnvVar, ...], Unique("name")] = Field(
        default=(), max_length=64, description="Environment variables. The command gets only these and PATH."
    )
    kubeconfig: bool = Field(
        default=False,
        description="Whether the command gets a kubeconfig (in KUBECONFIG) for the ServiceAccount of the Agent "
        "that uses it (spec.serviceAccountName of the Agent). An Agent without one cannot use it. In "
        "a cluster, use run.kubeconfig.",
    )


class CaSource(Model):
    """Source of CA certificates. Set exactly one."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "has(self.configMapKeyRef) != has(self.secretKeyRef)",
            "set exactly one of configMapKeyRef and secretKeyRef",
            lambda self: (self.config_map_key_ref is None) != (self.secret_key_ref is None),
        ),
    )

    config_map_key_ref: ConfigMapKeyRef | None = Field(default=None, description="Key of a ConfigMap.")
    secret_key_ref: SecretKeyRef | None = Field(default=None, description="Key of a Secret.")


class ServerTls(Model):
    """TLS verification of the server."""

    ca_from: CaSource = Field(description="CA certificates in PEM format. Only these are trusted.")


class Http(Model):
    """A server reached over HTTP."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "!has(self.tls) || self.url.startsWith('https://')",
            "tls is for URLs that begin with https://; change the URL, or leave tls out",
            lambda self: self.tls is None or self.url.startswith("https://"),
            field="tls",
        ),
        ValidationRule(
            "!has(self.bearerTokenSecretRef) || !has(self.headers) "
            "|| !self.headers.exists(header, header.name.matches('(?i)^authorization$'))",
            "set bearerTokenSecretRef or the header Authorization, not both",
            lambda self: (
                self.bearer_token_secret_ref is None
                or all(header.name.lower() != "authorization" for header in self.headers)
            ),
            field="bearerTokenSecretRef",
        ),
        ValidationRule(
            "!has(self.tokenAudience) || !has(self.bearerTokenSecretRef)",
            "set tokenAudience or bearerTokenSecretRef, not both",
            lambda self: self.token_audience is None or self.bearer_token_secret_ref is None,
            field="tokenAudience",
        ),
        ValidationRule(
            "!has(self.tokenAudience) || !has(self.headers) "
            "|| !self.headers.exists(header, header.name.matches('(?i)^authorization$'))",
            "set tokenAudience or the header Authorization, not both",
            lambda self: (
                self.token_audience is None or all(header.name.lower() != "authorization" for header in self.headers)
            ),
            field="tokenAudience",
        ),
    )

    url: HttpUrl = Field(description="URL of the server.")
    bearer_token_secret_ref: SecretKeyRef | None = Field(
        default=None, description="Token sent with every request as Authorization: Bearer."
    )
    token_audience: Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=AUDIENCE)] | None = Field(
        default=None,
        description="Audience of the tokens that this server accepts. Every request carries a token for this "
        "audience as Authorization: Bearer, issued for the ServiceAccount of the Agent that uses the "
        "server (spec.serviceAccountName of the Agent). Must not be an audience that the Kubernetes "
        "API accepts.",
    )
    headers: Annotated[tuple[Header, ...], Unique("name")] = Field(
        default=(), max_length=32, description="Headers sent with every request."
    )
    tls: ServerTls | None = Field(
        default=None, description="TLS verification of the server. Defaults to the system's CA certificates."
    )


class Transport(Model):
    """Connection to the server. Set only the settings of the chosen type."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "(!has(self.stdio) || self.type == 'stdio') && (!has(self.http) || self.type != 'stdio')",
            "set stdio when type is stdio, http when type is http or sse, and not the other",
            lambda self: (self.stdio is None or self.type == "stdio") and (self.http is None or self.type != "stdio"),
        ),
    )

    type: Literal["stdio", "http", "sse"] = Field(
        description="Transport type. stdio: a command. http: streamable HTTP. sse: the older HTTP transport with "
        "server-sent events."
    )
    stdio: Stdio | None = Field(default=None, description="Command to start, for type stdio, on one machine.")
    http: Http | None = Field(default=None, description="Endpoint, for types http and sse.")
