"""Defines the topics of serving: APIs, the web UI, the webhook, intake, observability, logging, the gateway."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

from tarsy.app.settings.topic import FilePath, Flag, Names, SettingsTopic

if TYPE_CHECKING:
    from tarsy.observe.tracing import SpanStyle


def _page_address(value: str) -> str:
    from tarsy.controllers.notifications.text import page_address

    return page_address(value)


def _host_of(port: int) -> str:
    """A free port serves a test or a developer, so it is on loopback."""
    return "127.0.0.1" if port == 0 else "0.0.0.0"


def _origins(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(value.rstrip("/") for value in values)


class HttpApiSettings(SettingsTopic):
    """The HTTP API for callers with a bearer token, which also serves the web UI."""

    host: Annotated[str, Flag("--http-host")] = Field(
        "0.0.0.0", description="Address that the HTTP API and the aggregated API listen on."
    )
    port: Annotated[int, Flag("--http-port")] = Field(
        8081, ge=0, le=65535, description="Port of the HTTP API. 0 takes a free port."
    )
    tls_directory: Annotated[FilePath | None, Flag("--http-tls", metavar="DIR")] = Field(
        None, description="Directory with tls.crt and tls.key of the HTTP API. Default: plain HTTP."
    )
    token_audiences: Annotated[Names, Flag("--token-audience")] = Field(
        (), description="Audience that bearer tokens must be issued for. Default: the audience of the Kubernetes API."
    )


class RecordApiSettings(SettingsTopic):
    """The aggregated API record.tarsy.dev, which the Kubernetes API server calls."""

    enabled: Annotated[bool, Flag("--record-api")] = Field(
        True, description="Serve the aggregated API beside the HTTP API."
    )
    port: Annotated[int, Flag("--record-port")] = Field(
        8443, ge=0, le=65535, description="Port of the aggregated API. 0 takes a free port."
    )
    tls_directory: Annotated[FilePath | None, Flag("--record-tls", metavar="DIR")] = Field(
        None,
        description="Directory with tls.crt, tls.key and optionally ca.crt of the aggregated API. Default: the "
        "operator issues a certificate.",
    )


class WebUiSettings(SettingsTopic):
    """The web UI and an authenticating proxy before it."""

    url: Annotated[Annotated[str, AfterValidator(_page_address)] | None, Flag("--page-url", metavar="URL")] = Field(
        None,
        description="URL of the web UI, such as https://tarsy.example.org. Notifications (spec.notify) link to it. "
        "Default: notifications contain no link.",
    )
    origins: Annotated[Names, AfterValidator(_origins), Flag("--page-origin", metavar="URL")] = Field(
        (),
        description="Origin of the web UI in browsers, such as https://tarsy.example.org, where a proxy does not "
        "forward the Host header.",
    )
    proxy_ca_file: Annotated[FilePath | None, Flag("--page-proxy-ca", metavar="FILE")] = Field(
        None,
        description="CA of an authenticating proxy before the HTTP API; needs --http-tls. A connection with a "
        "certificate of this CA acts as the user in the proxy's headers. Use a dedicated CA, never the cluster's "
        "client CA: each of its certificates could impersonate any user.",
    )
    proxy_names: Annotated[Names, Flag("--page-proxy-name")] = Field(
        (), description="Common name of the proxy's certificate. Default: any name that the CA signed."
    )
    proxy_user_header: Annotated[str, Flag("--page-proxy-user-header")] = Field(
        "X-Remote-User", description="Header in which the proxy sends the user name."
    )
    proxy_group_header: Annotated[str, Flag("--page-proxy-group-header")] = Field(
        "X-Remote-Group", description="Header in which the proxy sends the user's groups, repeated or comma-separated."
    )
    sign_in_file: Annotated[FilePath | None, Flag("--sign-in-file", environment="TARSY_SIGN_IN_FILE", hidden=True)] = (
        Field(None, description="File with a one-time sign-in code, for tarsy dev.")
    )


class WebhookSettings(SettingsTopic):
    """The admission webhook, which records the author of objects."""

    port: Annotated[int | None, Flag("--admission-port")] = Field(
        None,
        ge=0,
        le=65535,
        description="Port of the admission webhook. 0 takes a free port on loopback. Default: no webhook is served.",
    )
    address: Annotated[str | None, Flag("--admission-host")] = Field(
        None, description="Address that the admission webhook listens on. Default: all, or loopback for port 0."
    )
    tls_directory: Annotated[FilePath | None, Flag("--admission-tls", metavar="DIR")] = Field(
        None,
        description="Directory with tls.crt and tls.key of the admission webhook. Its registration and CA are then "
        "managed externally, as by OLM. Default: the operator issues a certificate and publishes its CA.",
    )
    require_author: Annotated[bool, Flag("--require-author")] = Field(
        False,
        description="Reject objects without an author, which the admission webhook records. By default objects without "
        "an author are accepted and the 'use' permission is not checked for them.",
    )

    @property
    def host(self) -> str:
        """The address of the webhook."""
        return self.address or _host_of(self.port or 0)


class IntakeSettings(SettingsTopic):
    """Alerts over HTTP."""

    queue_limit: Annotated[int, Flag("--queue-limit")] = Field(
        1000,
        ge=1,
        description="Queued investigations above which incoming alerts are rejected with a request to retry.",
    )
    namespace_queue_limit: Annotated[int, Flag("--namespace-queue-limit")] = Field(
        500,
        ge=1,
        description="Queued investigations of one namespace above which its incoming alerts are rejected with a "
        "request to retry.",
    )


class ObservabilitySettings(SettingsTopic):
    """Health, metrics and traces."""

    health_port: Annotated[int, Flag("--health-port")] = Field(
        8080, ge=0, le=65535, description="Port of /healthz and /readyz. 0 takes a free port on loopback."
    )
    metrics_port: Annotated[int | None, Flag("--metrics-port")] = Field(
        None, ge=0, le=65535, description="Port of /metrics. 0 takes a free port. Default: no metrics are served."
    )
    metrics_host: Annotated[str, Flag("--metrics-host")] = Field(
        "127.0.0.1", description="Address that /metrics listens on; requests are not authenticated."
    )
    otlp_endpoint: Annotated[
        str | None, Flag("--otlp-endpoint", environment="OTEL_EXPORTER_OTLP_ENDPOINT", metavar="URL")
    ] = Field(
        None, description="URL of an OTLP/HTTP collector for traces, such as http://collector:4318. Default: no traces."
    )
    otlp_content: Annotated[bool, Flag("--otlp-content")] = Field(
        False,
        description="Include the messages of models and the arguments and results of tools in traces, with secrets "
        "masked as on record. Readers of the traces then see content that otherwise requires the role "
        "tarsy-tracer.",
    )
    otlp_flavour: Annotated[Literal["genai", "openinference"], Flag("--otlp-flavour")] = Field(
        "genai",
        description="Attributes of spans: OpenTelemetry's GenAI conventions, or those of OpenInference beside them.",
    )

    @property
    def span_style(self) -> "SpanStyle":
        """Returns the content of spans."""
        from tarsy.observe.tracing import SpanStyle  # an option's help needs no tracing

        return SpanStyle(content=self.otlp_content, openinference=self.otlp_flavour == "openinference")

    @property
    def health_host(self) -> str:
        """The address of the health port."""
        return _host_of(self.health_port)


class LoggingSettings(SettingsTopic):
    """The log on standard error."""

    json_lines: Annotated[bool, Flag("--json-logs")] = Field(
        False, description="Write the log as one JSON object a line."
    )
    level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], Flag("--log-level", environment="TARSY_LOG_LEVEL")
    ] = Field("INFO", description="Lowest level that is logged.")


class GatewaySettings(SettingsTopic):
    """The gateway of a tool server (tarsy mcp-gateway)."""

    token_file: Annotated[FilePath, Flag("--token-file", metavar="FILE")] = Field(
        description="File with the bearer token that every request must contain."
    )
    launcher: Annotated[FilePath | None, Flag("--launcher", metavar="SOCKET")] = Field(
        None,
        description="Socket of tarsy-launcher, which starts the tool server in the container of its own image. Use "
        "it instead of a command.",
    )
    host: Annotated[str, Flag("--host")] = Field("0.0.0.0", description="Address to listen on.")
    port: Annotated[int, Flag("--port")] = Field(8080, ge=0, le=65535, description="Port. 0 takes a free port.")
    environment: Annotated[Names, Flag("--env")] = Field(
        (),
        description="Environment variable of the gateway to pass to the tool server, which otherwise gets only PATH.",
    )
    max_sessions: Annotated[int, Flag("--max-sessions")] = Field(
        64, ge=1, description="Maximum concurrent sessions; each runs a process of the tool server."
    )
    max_message_mib: Annotated[int, Flag("--max-message-mib")] = Field(
        64, ge=1, le=1024, description="Maximum size of a message in MiB."
    )
    idle_seconds: Annotated[float, Flag("--idle-seconds")] = Field(
        600.0, ge=1, description="Seconds without a request after which a session ends."
    )
