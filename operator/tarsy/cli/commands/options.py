"""Options and arguments that several commands have, said once: the same word means the same thing everywhere."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

if TYPE_CHECKING:
    from tarsy.plan.destinations import Destinations

S = TypeVar("S")
_RESOLV_CONF = Path("/etc/resolv.conf")

Namespaces = Annotated[
    list[str] | None, typer.Option("--namespace", "-n", help="Only this namespace; may be repeated.")
]
Kubeconfig = Annotated[
    str | None, typer.Option(help="Kubeconfig file; else the pod's ServiceAccount, else the default.")
]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig.")]
DatabaseUrl = Annotated[
    str,
    typer.Option(
        envvar="TARSY_DATABASE_URL",
        help="postgresql:// address of the record; with sslmode where it is not on this machine.",
        show_envvar=True,
    ),
]
OptionalDatabaseUrl = Annotated[
    str | None,
    typer.Option(
        envvar="TARSY_DATABASE_URL", help="For administrators: read the record itself there.", show_envvar=True
    ),
]
ListenUrl = Annotated[
    str | None, typer.Option(envvar="TARSY_LISTEN_URL", help="Address for LISTEN, past a transaction pooler.")
]
GlobalLimit = Annotated[int, typer.Option(min=1, help="Investigations of the installation at once.")]
NamespaceLimit = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Investigations of one namespace at once, and answers to questions as many; not given: only maxConcurrent "
        "of its InvestigationDefaults bounds them.",
    ),
]
LeaseSeconds = Annotated[float, typer.Option(min=2, help="A silent worker's runs go to others after this.")]
DrainSeconds = Annotated[
    float, typer.Option(min=0, help="After SIGTERM, this long for runs to reach a boundary and be handed back.")
]
StdioTools = Annotated[bool, typer.Option(help="Let MCPServers run commands here: on one machine only.")]
UrlHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--url-host",
        help="URLs of MCPServers and LLMProviders may lead to this name (or *.NAME), address or network. In a pod, "
        "without it, only to public addresses and to Services of the object's own namespace.",
    ),
]
ClusterDomain = Annotated[
    str | None,
    typer.Option(
        envvar="TARSY_CLUSTER_DOMAIN",
        help="Domain of the cluster's Services, for URLs that lead to them; not given: as in the pod's "
        "/etc/resolv.conf, else cluster.local.",
    ),
]
LentTo = Annotated[
    list[str] | None,
    typer.Option(
        "--workload-identity-for",
        help="LLMProviders of this namespace may use the pods' own Google identity (Vertex AI).",
    ),
]
HealthPort = Annotated[int, typer.Option(help="Port of /healthz and /readyz; 0: a free one on loopback.")]
MetricsPort = Annotated[
    int | None, typer.Option(min=0, help="Port of /metrics, and of nothing else; 0: a free one; not given: none.")
]
MetricsHost = Annotated[str, typer.Option(help="Address of that port; nobody is asked there who they are.")]
JsonLogs = Annotated[bool, typer.Option(help="One JSON object a line.")]
OtlpEndpoint = Annotated[
    str | None,
    typer.Option(
        envvar="OTEL_EXPORTER_OTLP_ENDPOINT",
        help="Send traces to this OTLP/HTTP collector (http://collector:4318); not given: there are none.",
    ),
]
LogLevel = Annotated[
    Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"],
    typer.Option(envvar="TARSY_LOG_LEVEL", case_sensitive=False, help="What is logged: this level and those above it."),
]
LibraryNamespace = Annotated[
    str,
    typer.Option(
        envvar="TARSY_LIBRARY_NAMESPACE",
        help="Namespace of the library: Chains, and the InvestigationDefaults, that a namespace has not itself are "
        "looked for there.",
    ),
]


def span(text: str, option: str, read: Callable[[str], S]) -> S:
    """The value of `option` as `read` reads it; what it cannot read is wrong use."""
    try:
        return read(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def destinations(opened: list[str] | None, cluster_domain: str | None) -> "Destinations":
    """Where URLs of objects may lead; a process that a kubelet started knows itself in a pod."""
    from tarsy.plan.destinations import Destinations, domain_of

    try:
        resolv_conf = _RESOLV_CONF.read_text(errors="replace")
    except OSError:
        resolv_conf = ""
    domain = domain_of(resolv_conf) if cluster_domain is None else cluster_domain
    try:
        return Destinations.of(opened or (), in_pod="KUBERNETES_SERVICE_HOST" in os.environ, cluster_domain=domain)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--url-host, --cluster-domain") from None
