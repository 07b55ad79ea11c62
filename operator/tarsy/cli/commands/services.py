"""`tarsy run` and `tarsy worker`: the long-running processes, in the words of their options."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tarsy.cli.commands.options import (
    ClusterDomain,
    Context,
    DatabaseUrl,
    DrainSeconds,
    GlobalLimit,
    HealthPort,
    JsonLogs,
    Kubeconfig,
    LeaseSeconds,
    LentTo,
    LibraryNamespace,
    ListenUrl,
    LogLevel,
    MetricsHost,
    MetricsPort,
    NamespaceLimit,
    Namespaces,
    OtlpEndpoint,
    StdioTools,
    UrlHosts,
    destinations,
    span,
)
from tarsy.cli.running import go
from tarsy.plan.library import LIBRARY_NAMESPACE

if TYPE_CHECKING:
    from tarsy.runtime.settings import WorkerSettings


def run(
    database_url: DatabaseUrl,
    listen_url: ListenUrl = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespaces = None,
    library_namespace: LibraryNamespace = LIBRARY_NAMESPACE,
    lease_namespace: Annotated[
        str,
        typer.Option(
            envvar="TARSY_LEASE_NAMESPACE",
            help="Namespace of the operator itself, with the Leases by which its replicas know which one is active.",
        ),
    ] = "tarsy-system",
    places: Annotated[
        int, typer.Option(min=0, help="Investigations of this process at once; 0: workers of their own run them.")
    ] = 20,
    global_limit: GlobalLimit = 100,
    namespace_limit: NamespaceLimit = None,
    lease_seconds: LeaseSeconds = 15,
    drain_seconds: DrainSeconds = 20,
    stdio_tools: StdioTools = False,
    url_host: UrlHosts = None,
    cluster_domain: ClusterDomain = None,
    runbook_host: Annotated[
        list[str] | None,
        typer.Option(help="Runbooks may be fetched from this host, whatever its address, for every namespace."),
    ] = None,
    server_check_seconds: Annotated[
        float, typer.Option(min=1, help="Each MCPServer is looked at so often: does it answer, what are its tools.")
    ] = 60,
    workload_identity_for: LentTo = None,
    retention: Annotated[
        str,
        typer.Option(
            envvar="TARSY_RETENTION",
            help="Records are deleted so long after the end of their run: a number with s, m, h, d or w; or: forever.",
        ),
    ] = "90d",
    http_port: Annotated[
        int, typer.Option(min=0, help="Port of the HTTP API, for callers with a bearer token; 0: a free one.")
    ] = 8081,
    record_port: Annotated[
        int, typer.Option(min=0, help="Port of the aggregated API record.tarsy.dev, for the API server; 0: a free one.")
    ] = 8443,
    http_tls: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder with tls.crt and tls.key of the HTTP API; else it is plain HTTP."),
    ] = None,
    http_host: Annotated[str, typer.Option(help="Both ports are of this address.")] = "0.0.0.0",
    record_api: Annotated[bool, typer.Option(help="Serve the aggregated API; without, only the HTTP API.")] = True,
    record_tls: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder with tls.crt, tls.key and perhaps ca.crt of the aggregated API; else one is made.",
        ),
    ] = None,
    token_audience: Annotated[
        list[str] | None,
        typer.Option(help="Tokens must be for this audience, not for the Kubernetes API; may be repeated."),
    ] = None,
    page_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where people open the page, such as https://tarsy.example.org: what they are told of a run "
            "(spec.notify) links to it there; not given: there is no link.",
        ),
    ] = None,
    page_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="People open the page at this address, such as https://tarsy.example.org, where what stands before it "
            "does not pass their Host header on; may be repeated.",
        ),
    ] = None,
    page_proxy_ca: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CA of an authenticating proxy before the HTTP API (needs --http-tls): a connection by its "
            "certificate is from the person whom its headers name. Made for this alone: never the cluster's client "
            "CA, by which anybody could say to be anybody.",
        ),
    ] = None,
    page_proxy_name: Annotated[
        list[str] | None,
        typer.Option(help="Common name of the proxy's certificate; may be repeated; none: any that its CA signed."),
    ] = None,
    page_proxy_user_header: Annotated[str, typer.Option(help="Where the proxy says who asks.")] = "X-Remote-User",
    page_proxy_group_header: Annotated[
        str, typer.Option(help="Where it says their groups, repeated or with commas between.")
    ] = "X-Remote-Group",
    admission_port: Annotated[
        int | None,
        typer.Option(min=0, help="Port of the admission webhook; 0: a free one on loopback; not given: none."),
    ] = None,
    require_author: Annotated[
        bool, typer.Option(help="Refuse what admission stamped no author on; without, anybody may have created it.")
    ] = False,
    sign_in_file: Annotated[Path | None, typer.Option(hidden=True, envvar="TARSY_SIGN_IN_FILE")] = None,
    queue_limit: Annotated[
        int, typer.Option(min=1, help="Where more investigations wait, alerts that come in are sent back for later.")
    ] = 1000,
    namespace_queue_limit: Annotated[
        int, typer.Option(min=1, help="Where more investigations of one namespace wait, its alerts are sent back.")
    ] = 500,
    health_port: HealthPort = 8080,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = "127.0.0.1",
    otlp_endpoint: OtlpEndpoint = None,
    json_logs: JsonLogs = False,
    log_level: LogLevel = "INFO",
) -> None:
    """Run the operator against a cluster."""
    from tarsy.app.operator import OperatorSettings, operate
    from tarsy.cli.spans import seconds_or_forever
    from tarsy.controllers.notifications.text import page_address
    from tarsy.http.authentication.web_ui_proxy import PageProxySettings
    from tarsy.http.server import HttpSettings
    from tarsy.observe.logs import configure

    configure(json=json_logs, level=log_level)
    settings = OperatorSettings(
        database_url=database_url,
        listen_url=listen_url,
        kubeconfig=kubeconfig,
        context=context,
        library_namespace=library_namespace,
        lease_namespace=lease_namespace,
        namespaces=tuple(namespace or ()),
        stdio_tools=stdio_tools,
        destinations=destinations(url_host, cluster_domain),
        runbook_hosts=tuple(runbook_host or ()),
        server_check_seconds=server_check_seconds,
        retention_seconds=span(retention, "--retention", seconds_or_forever),
        workload_identity_for=tuple(workload_identity_for or ()),
        health_host=_health_host(health_port),
        health_port=health_port,
        metrics_host=metrics_host,
        metrics_port=metrics_port,
        otlp_endpoint=otlp_endpoint,
        worker=_worker(places, global_limit, namespace_limit, lease_seconds, drain_seconds) if places else None,
        http=HttpSettings(
            host=http_host,
            port=http_port,
            tls=http_tls,
            record_port=record_port if record_api else None,
            record_tls=record_tls,
            audiences=tuple(token_audience or ()),
            namespace=lease_namespace,
            sign_in_file=sign_in_file,
            origins=tuple(origin.rstrip("/") for origin in page_origin or ()),
            page_proxy=PageProxySettings(
                page_proxy_ca, tuple(page_proxy_name or ()), page_proxy_user_header, page_proxy_group_header
            )
            if page_proxy_ca
            else None,
        ),
        admission_host=_health_host(admission_port or 0),
        admission_port=admission_port,
        require_author=require_author,
        queue_limit=queue_limit,
        namespace_queue_limit=namespace_queue_limit,
        page_url=span(page_url, "--page-url", page_address) if page_url is not None else None,
    )
    go(operate(settings), service=True)


def worker(
    database_url: DatabaseUrl,
    listen_url: ListenUrl = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    library_namespace: LibraryNamespace = LIBRARY_NAMESPACE,
    places: Annotated[int, typer.Option(min=1, help="Investigations of this process at once.")] = 20,
    global_limit: GlobalLimit = 100,
    namespace_limit: NamespaceLimit = None,
    lease_seconds: LeaseSeconds = 15,
    drain_seconds: DrainSeconds = 20,
    stdio_tools: StdioTools = False,
    url_host: UrlHosts = None,
    cluster_domain: ClusterDomain = None,
    workload_identity_for: LentTo = None,
    health_port: HealthPort = 8080,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = "127.0.0.1",
    otlp_endpoint: OtlpEndpoint = None,
    json_logs: JsonLogs = False,
    log_level: LogLevel = "INFO",
) -> None:
    """Run investigations that an operator accepted; any number of these, anywhere."""
    from tarsy.app.worker import WorkerProcessSettings, work
    from tarsy.observe.logs import configure

    configure(json=json_logs, level=log_level)
    settings = WorkerProcessSettings(
        database_url=database_url,
        listen_url=listen_url,
        kubeconfig=kubeconfig,
        context=context,
        library_namespace=library_namespace,
        stdio_tools=stdio_tools,
        destinations=destinations(url_host, cluster_domain),
        workload_identity_for=tuple(workload_identity_for or ()),
        health_host=_health_host(health_port),
        health_port=health_port,
        metrics_host=metrics_host,
        metrics_port=metrics_port,
        otlp_endpoint=otlp_endpoint,
        worker=_worker(places, global_limit, namespace_limit, lease_seconds, drain_seconds),
    )
    go(work(settings), service=True)


def _worker(
    places: int, global_limit: int, namespace_limit: int | None, lease_seconds: float, drain_seconds: float
) -> "WorkerSettings":
    """A worker whose heartbeats, and looks for lapsed leases, fit its lease."""
    from tarsy.runtime.settings import WorkerSettings

    usual = WorkerSettings()
    return WorkerSettings(
        places=places,
        global_limit=global_limit,
        namespace_limit=namespace_limit,
        lease_seconds=lease_seconds,
        heartbeat_seconds=lease_seconds / 3,
        poll_seconds=min(usual.poll_seconds, lease_seconds / 3),
        drain_seconds=drain_seconds,
    )


def _health_host(port: int) -> str:
    return "127.0.0.1" if port == 0 else "0.0.0.0"
