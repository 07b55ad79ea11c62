"""Defines the topics of each process."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from tarsy.app.settings.serving_topics import (
    GatewaySettings,
    HttpApiSettings,
    IntakeSettings,
    LoggingSettings,
    ObservabilitySettings,
    RecordApiSettings,
    WebhookSettings,
    WebUiSettings,
)
from tarsy.app.settings.topic import SettingsTopic
from tarsy.app.settings.work_topics import (
    DatabaseSettings,
    ExecutionSettings,
    HistorySettings,
    KubernetesSettings,
    McpSettings,
    OutboundSettings,
    ReconcileSettings,
    SlackSettings,
    WorkerExecutionSettings,
    WorkerPodSettings,
)


class ProcessSettings(BaseModel):
    """Topics of every process that works on the database and the Kubernetes API."""

    model_config = SettingsTopic.model_config

    database: DatabaseSettings
    kubernetes: KubernetesSettings = KubernetesSettings()
    execution: ExecutionSettings = ExecutionSettings()
    mcp: McpSettings = McpSettings()
    outbound: OutboundSettings = OutboundSettings()
    observability: ObservabilitySettings = ObservabilitySettings()
    logging: LoggingSettings = LoggingSettings()


class OperatorSettings(ProcessSettings):
    """Topics of `tarsy run`."""

    controller: ReconcileSettings = ReconcileSettings()
    history: HistorySettings = HistorySettings()
    http: HttpApiSettings = HttpApiSettings()
    record_api: RecordApiSettings = RecordApiSettings()
    web_ui: WebUiSettings = WebUiSettings()
    webhook: WebhookSettings = WebhookSettings()
    intake: IntakeSettings = IntakeSettings()
    slack: SlackSettings = SlackSettings()


class WorkerProcessSettings(ProcessSettings):
    """Topics of `tarsy worker`."""

    execution: WorkerExecutionSettings = WorkerExecutionSettings()
    worker_pod: WorkerPodSettings = WorkerPodSettings()


class GatewayProcessSettings(BaseModel):
    """Topics of `tarsy mcp-gateway`."""

    model_config = SettingsTopic.model_config

    gateway: GatewaySettings
    logging: LoggingSettings = LoggingSettings()


def topics_of(process: type[BaseModel]) -> Mapping[str, type[SettingsTopic]]:
    """Returns the topics of a process, by their names in Python."""
    found = {name: field.annotation for name, field in process.model_fields.items()}
    return {
        name: topic for name, topic in found.items() if isinstance(topic, type) and issubclass(topic, SettingsTopic)
    }


TOPICS: Final[Mapping[str, type[SettingsTopic]]] = MappingProxyType(
    {
        to_camel(name): topic
        for one in (WorkerProcessSettings, OperatorSettings, GatewayProcessSettings)
        for name, topic in topics_of(one).items()
    }
)
"""All topics by their names in the file; execution as an operator takes it."""
