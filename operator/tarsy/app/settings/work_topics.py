"""Defines the topics of the work: Kubernetes, the database, execution, tool servers, destinations, controllers."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import parse_qs, urlsplit

from pydantic import AfterValidator, Field, Strict, ValidationInfo

from tarsy.app.durations import seconds_of, seconds_or_forever
from tarsy.app.settings.topic import FilePath, Flag, Names, SettingsTopic
from tarsy.plan.destinations import Destinations, domain_of
from tarsy.plan.library import LIBRARY_NAMESPACE
from tarsy.record.judging.incident_outcome import OutcomePeriods
from tarsy.runtime.settings import WorkerSettings

_WORKER = WorkerSettings()
_RESOLV_CONF = Path("/etc/resolv.conf")


def _retention(value: str) -> str:
    seconds_or_forever(value)
    return value


def _duration(value: str) -> str:
    seconds_of(value)
    return value


def _host(value: str) -> str:
    Destinations.of((value,), in_pod=False)
    return value


def _domain(value: str) -> str:
    Destinations.of((), in_pod=False, cluster_domain=value)
    return value


def _without_password(value: str, info: ValidationInfo) -> str:
    """Refuses a password in the configuration file, which a ConfigMap shows to everybody who may read it."""
    variable = (info.context or {}).get("passwords_go_to", {}).get(info.field_name)
    if variable is None:
        return value
    try:
        parts = urlsplit(value)
        found = parts.password is not None or "password" in parse_qs(parts.query)
    except ValueError:
        found = True  # which part of it is the password, cannot be said
    if found:
        raise ValueError(f"contains a password; leave the field out and set {variable} from a Secret")
    return value


class KubernetesSettings(SettingsTopic):
    """The Kubernetes API and the library."""

    kubeconfig: Annotated[str | None, Flag("--kubeconfig")] = Field(
        None, description="Kubeconfig file. Default: the pod's ServiceAccount, else KUBECONFIG or ~/.kube/config."
    )
    context: Annotated[str | None, Flag("--context")] = Field(
        None, description="Context of the kubeconfig. Default: its current context."
    )
    library_namespace: Annotated[str, Flag("--library-namespace", environment="TARSY_LIBRARY_NAMESPACE")] = Field(
        LIBRARY_NAMESPACE,
        description="Namespace of the library: Chains and InvestigationDefaults that a namespace does not define "
        "itself are looked up there.",
    )


class DatabaseSettings(SettingsTopic):
    """The Postgres database that holds the record."""

    url: Annotated[
        str, AfterValidator(_without_password), Flag("--database-url", environment="TARSY_DATABASE_URL", metavar="URL")
    ] = Field(
        description="postgresql:// URL of the database; needs sslmode unless the database is on this machine. In a "
        "file only without a password."
    )
    listen_url: Annotated[
        Annotated[str, AfterValidator(_without_password)] | None,
        Flag("--listen-url", environment="TARSY_LISTEN_URL", metavar="URL"),
    ] = Field(
        None,
        description="URL of the same database for LISTEN, where the database URL leads to a transaction pooler. In a "
        "file only without a password. Default: the database URL.",
    )


class ExecutionSettings(SettingsTopic):
    """The built-in worker, which runs investigations."""

    max_concurrent: Annotated[int, Flag("--places")] = Field(
        _WORKER.places,
        ge=0,
        description="Maximum concurrent investigations in this process. 0 disables the built-in worker.",
    )
    max_concurrent_total: Annotated[int, Flag("--global-limit")] = Field(
        _WORKER.global_limit, ge=1, description="Maximum concurrent investigations in the whole installation."
    )
    max_concurrent_per_namespace: Annotated[int | None, Flag("--namespace-limit")] = Field(
        _WORKER.namespace_limit,
        ge=1,
        description="Maximum concurrent investigations of one namespace, and as many answers to questions. Default: "
        "only maxConcurrent of the namespace's InvestigationDefaults limits them.",
    )
    max_parked: Annotated[int, Flag("--max-parked")] = Field(
        _WORKER.max_parked,
        ge=0,
        description="Maximum investigations and answers in the whole installation that wait for people or for a "
        "provider's rate limit. They hold no worker and do not count as concurrent. Above the limit, a run continues "
        "without the call that it would wait for.",
    )
    max_parked_per_namespace: Annotated[int | None, Flag("--max-parked-per-namespace")] = Field(
        _WORKER.max_parked_of_namespace,
        ge=0,
        description="The same maximum for one namespace. Default: only maxParked applies.",
    )
    max_wait_hours: Annotated[float, Flag("--max-wait-hours")] = Field(
        _WORKER.max_wait_seconds / 3600,
        ge=0,
        le=168,
        description="Total hours that one investigation may wait. Its deadline and its budget do not run meanwhile.",
    )
    max_approval_requests: Annotated[int, Flag("--max-approval-requests")] = Field(
        _WORKER.approval_requests, ge=0, description="Maximum approvals that one investigation may ask for."
    )
    park_provider_seconds: Annotated[float, Flag("--park-provider-seconds")] = Field(
        _WORKER.park_provider_seconds,
        ge=0,
        description="Seconds of delay requested by an LLM provider above which an investigation waits without a "
        "worker. 0: it always keeps its worker.",
    )
    lease_seconds: Annotated[float, Flag("--lease-seconds")] = Field(
        _WORKER.lease_seconds,
        ge=2,
        description="Seconds without a heartbeat after which other workers take over a worker's investigations.",
    )
    drain_seconds: Annotated[float, Flag("--drain-seconds")] = Field(
        _WORKER.drain_seconds,
        ge=0,
        description="Seconds after SIGTERM for investigations to finish their current step before other workers take "
        "them over.",
    )

    def worker(self) -> WorkerSettings | None:
        """Returns the settings of the worker, None for no worker. Heartbeats and polls follow the lease."""
        if not self.max_concurrent:
            return None
        return WorkerSettings(
            places=self.max_concurrent,
            global_limit=self.max_concurrent_total,
            namespace_limit=self.max_concurrent_per_namespace,
            max_parked=self.max_parked,
            max_parked_of_namespace=self.max_parked_per_namespace,
            max_wait_seconds=self.max_wait_hours * 3600,
            approval_requests=self.max_approval_requests,
            park_provider_seconds=self.park_provider_seconds,
            lease_seconds=self.lease_seconds,
            heartbeat_seconds=self.lease_seconds / 3,
            poll_seconds=min(_WORKER.poll_seconds, self.lease_seconds / 3),
            drain_seconds=self.drain_seconds,
        )


class WorkerExecutionSettings(ExecutionSettings):
    """Execution in a worker pod, which always has a worker."""

    max_concurrent: Annotated[int, Flag("--places")] = Field(
        _WORKER.places,
        ge=1,
        description="Maximum concurrent investigations in this pod, divided among its processes.",
    )


class WorkerPodSettings(SettingsTopic):
    """The processes of a worker pod (tarsy worker)."""

    processes: Annotated[int | None, Flag("--processes", environment="TARSY_PROCESSES")] = Field(
        None,
        ge=1,
        description="Number of processes, each with its own lease. Default: one per core of the pod (its CPU limit "
        "rounded "
        "up; without one, the cores of the node), as far as its memory limit allows 256 MiB for each; at most one "
        "per place and per 3 connections to Postgres.",
    )
    connections: Annotated[int, Flag("--database-connections")] = Field(
        21,
        ge=3,
        description="Maximum connections of this pod to Postgres, divided among its processes: at least 3 for each, "
        "one of them for LISTEN. The runs of a process use at most 8.",
    )


class McpSettings(SettingsTopic):
    """Tool servers (MCP)."""

    stdio: Annotated[bool, Flag("--stdio-tools")] = Field(
        False,
        description="Allow MCPServers to run commands in this process's container. Only for a single-user machine.",
    )


class OutboundSettings(SettingsTopic):
    """Addresses and identities that objects of tenants may use."""

    hosts: Annotated[tuple[Annotated[str, AfterValidator(_host)], ...], Strict(False), Flag("--url-host")] = Field(
        (),
        description="Host name, *.NAME, address or network that URLs of MCPServers and LLMProviders may use. By "
        "default a pod connects only to public addresses and to Services of the object's own namespace.",
    )
    cluster_domain: Annotated[
        Annotated[str, AfterValidator(_domain)] | None, Flag("--cluster-domain", environment="TARSY_CLUSTER_DOMAIN")
    ] = Field(
        None,
        description="DNS domain of the cluster's Services. Default: that of /etc/resolv.conf, else cluster.local.",
    )
    workload_identity_namespaces: Annotated[Names, Flag("--workload-identity-for")] = Field(
        (),
        description="Namespace whose LLMProviders may use the pods' own Google identity (Vertex AI).",
    )

    def destinations(self) -> Destinations:
        """Returns the destinations that URLs may have; a process that a kubelet started is in a pod."""
        try:
            resolv_conf = _RESOLV_CONF.read_text(errors="replace")
        except OSError:
            resolv_conf = ""
        domain = domain_of(resolv_conf) if self.cluster_domain is None else self.cluster_domain
        return Destinations.of(self.hosts, in_pod="KUBERNETES_SERVICE_HOST" in os.environ, cluster_domain=domain)


class ReconcileSettings(SettingsTopic):
    """The controllers, which reconcile objects and expire the record."""

    namespaces: Annotated[Names, Flag("--namespace", short="-n")] = Field(
        (), description="Namespace to watch. Default: all namespaces."
    )
    operator_namespace: Annotated[str, Flag("--lease-namespace", environment="TARSY_LEASE_NAMESPACE")] = Field(
        "tarsy-system",
        description="Namespace of the operator itself, which contains the Lease that elects the active replica.",
    )
    pod_users: Annotated[Literal["Auto", "Assigned", "Fixed"], Flag("--pod-users")] = Field(
        "Auto",
        description="User and group of the pods of tool servers (spec.run). Fixed: 65532. Assigned: by the cluster. "
        "Auto: Assigned if the cluster has the API group security.openshift.io, else Fixed.",
    )
    gateway_image: Annotated[str | None, Flag("--gateway-image")] = Field(
        None,
        description="Image of tarsy mcp-gateway in the pods of stdio tool servers (spec.run). Default: that of the "
        "operator's Deployment.",
    )
    runbook_hosts: Annotated[Names, Flag("--runbook-host")] = Field(
        (), description="Host from which all namespaces may fetch runbooks, regardless of its address."
    )
    git_hosts: Annotated[Names, Flag("--git-host")] = Field(
        (),
        description="Host, or HOST:PORT, of a Git server from which cases of EvalSuites, skills and runbooks may be "
        "read. "
        "Default: none.",
    )
    git_ca_file: Annotated[FilePath | None, Flag("--git-ca-file", metavar="FILE")] = Field(
        None, description="File with CA certificates of Git servers in PEM format, in addition to those of the system."
    )
    calibration_floor: Annotated[float, Flag("--calibration-floor")] = Field(
        0.5,
        ge=0,
        le=1,
        description="Minimum share of right findings with confidence High, as the lower bound of the 95 % interval. "
        "A Chain with 20 verdicts or more that is below it is not Calibrated.",
    )
    outcome_settle: Annotated[str, AfterValidator(_duration), Flag("--outcome-settle")] = Field(
        "24h",
        description="Time after a finding within which its alert must be resolved, so that the outcome is Settled: a "
        "number with s, m, h, d or w.",
    )
    outcome_recurrence: Annotated[str, AfterValidator(_duration), Flag("--outcome-recurrence")] = Field(
        "24h",
        description="Time after an alert was resolved within which its next firing is a recurrence; after it the "
        "outcome is Settled: a number with s, m, h, d or w.",
    )
    server_check_seconds: Annotated[float | None, Flag("--server-check-seconds")] = Field(
        60.0,
        ge=1,
        description="Seconds between two checks of an MCPServer: whether it responds and which tools it offers.",
    )
    retention: Annotated[str, AfterValidator(_retention), Flag("--retention", environment="TARSY_RETENTION")] = Field(
        "90d",
        description="Time after the end of an investigation at which its record is deleted: a number with s, m, h, d "
        "or w, or forever.",
    )

    replay_retention: Annotated[
        str, AfterValidator(_retention), Flag("--replay-retention", environment="TARSY_REPLAY_RETENTION")
    ] = Field(
        "14d",
        description="Time after the end of a replay at which its record is deleted: a number with s, m, h, d or w, or "
        "forever.",
    )

    @property
    def retention_seconds(self) -> float | None:
        """The retention in seconds; None: for ever."""
        return seconds_or_forever(self.retention)

    @property
    def replay_retention_seconds(self) -> float | None:
        """The retention of replays in seconds; None: for ever."""
        return seconds_or_forever(self.replay_retention)

    def outcome_periods(self) -> OutcomePeriods:
        """Returns how long the incidents of findings are followed."""
        settle, recurrence = (
            timedelta(seconds=seconds_of(one)) for one in (self.outcome_settle, self.outcome_recurrence)
        )
        return OutcomePeriods(settle, recurrence)


class SlackSettings(SettingsTopic):
    """Questions from Slack, in the threads of notifications."""

    app_token_file: Annotated[FilePath | None, Flag("--slack-app-token-file", metavar="FILE")] = Field(
        None,
        description="File with the app-level token (xapp-) that opens connections in Socket Mode. Without it, or if "
        "the file does not exist at startup, questions cannot be asked in Slack.",
    )
    bot_token_file: Annotated[FilePath, Flag("--slack-bot-token-file", metavar="FILE")] = Field(
        Path("/etc/tarsy/slack/bot-token"), description="File with the bot token (xoxb-) that posts replies."
    )
    users_file: Annotated[FilePath, Flag("--slack-users-file", metavar="FILE")] = Field(
        Path("/etc/tarsy/slack-users/users.yaml"),
        description="File that maps Slack users to users and groups of the cluster. Others cannot ask.",
    )
    api_url: Annotated[str, Flag("--slack-api-url", metavar="URL")] = Field(
        "https://slack.com/api",
        description="Base URL of Slack's Web API. People may ask in threads of notifications that were sent to it.",
    )


class HistorySettings(SettingsTopic):
    """The history of objects, in namespaces with the label tarsy.dev/history."""

    key_file: Annotated[
        FilePath | None, Flag("--history-key-file", environment="TARSY_HISTORY_KEY_FILE", metavar="FILE")
    ] = Field(
        None,
        description="File with the key, of at least 32 bytes, for the digests that replace values. Without it, or if "
        "the file does not exist, no history is recorded. Read at startup.",
    )
    retention: Annotated[
        str, AfterValidator(_duration), Flag("--history-retention", environment="TARSY_HISTORY_RETENTION")
    ] = Field(
        "14d",
        description="Time after which recorded changes are deleted: a number with s, m, h, d or w.",
    )
    namespace_mebibytes: Annotated[int, Flag("--history-namespace-mebibytes")] = Field(
        1024,
        ge=1,
        description="Maximum size of the history of one namespace, in MiB; the oldest changes are deleted first.",
    )

    @property
    def retention_seconds(self) -> float:
        """The retention in seconds."""
        return seconds_of(self.retention)

    def key(self) -> bytes | None:
        """Reads the key; None: there is none.

        Raises:
            OSError: the file cannot be read.
        """
        if self.key_file is None or not self.key_file.exists():
            return None
        return self.key_file.read_bytes().strip()
