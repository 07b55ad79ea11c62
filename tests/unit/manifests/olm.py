"""The form of an OLM bundle, as its documentation describes it: a field that is not here is a mistake."""

import base64
import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

BUNDLE_KINDS: Final = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "CustomResourceDefinition",
        "PodDisruptionBudget",
        "PriorityClass",
        "PrometheusRule",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
        "ServiceMonitor",
    }
)
"""What old and new OLM carries beside the ClusterServiceVersion. NetworkPolicy only since 2025, and not everywhere."""
CATEGORIES: Final = frozenset(
    {
        "AI/Machine Learning",
        "Application Runtime",
        "Big Data",
        "Cloud Provider",
        "Database",
        "Developer Tools",
        "Integration & Delivery",
        "Logging & Tracing",
        "Modernization & Migration",
        "Monitoring",
        "Networking",
        "OpenShift Optional",
        "Security",
        "Storage",
        "Streaming & Messaging",
    }
)
CAPABILITIES: Final = ("Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot")
_SEMVER: Final = r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$"
_NAME: Final = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"

Name = Annotated[str, Field(pattern=_NAME, max_length=253)]
Version = Annotated[str, Field(pattern=_SEMVER)]
Port = Annotated[int, Field(ge=1, le=65535)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


def _decodes(value: str) -> str:
    base64.b64decode(value, validate=True)
    return value


class Icon(_Strict):
    base64data: Annotated[str, AfterValidator(_decodes)] = Field(alias="base64data")
    mediatype: Literal["image/svg+xml", "image/png", "image/jpeg", "image/gif"]


class InstallMode(_Strict):
    type: Literal["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"]
    supported: bool


class RelatedImage(_Strict):
    name: Name
    image: str = Field(min_length=1)


class OwnedKind(_Strict):
    name: Annotated[str, Field(pattern=r"^[a-z]+\.[a-z0-9.-]+$")]
    kind: str
    version: str
    display_name: str = Field(min_length=1)
    description: str = Field(min_length=1)


class OwnedApi(_Strict):
    name: str
    kind: str
    group: str
    version: str
    display_name: str
    description: str
    deployment_name: str
    container_port: Port


class AdmissionRule(_Strict):
    api_groups: list[str]
    api_versions: list[str]
    operations: list[Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]]
    resources: list[str]
    scope: Literal["Namespaced", "Cluster", "*"]


class Webhook(_Strict):
    type: Literal["ValidatingAdmissionWebhook", "MutatingAdmissionWebhook"]
    generate_name: Name
    deployment_name: str
    container_port: Port
    target_port: Port | str
    webhook_path: Annotated[str, Field(pattern="^/")]
    admission_review_versions: list[Literal["v1"]]
    failure_policy: Literal["Fail", "Ignore"]
    match_policy: Literal["Exact", "Equivalent"]
    reinvocation_policy: Literal["Never", "IfNeeded"]
    rules: list[AdmissionRule]
    side_effects: Literal["None", "NoneOnDryRun"]
    timeout_seconds: Annotated[int, Field(ge=1, le=30)]


class PolicyRule(_Strict):
    api_groups: list[str]
    resources: list[str]
    verbs: list[str]
    resource_names: list[str] = []


class Permission(_Strict):
    service_account_name: Name
    rules: list[PolicyRule]


class DeploymentEntry(_Strict):
    name: Name
    label: dict[str, str]
    spec: dict[str, Any]


class InstallSpec(_Strict):
    permissions: list[Permission]
    cluster_permissions: list[Permission]
    deployments: list[DeploymentEntry] = Field(min_length=1)


class Install(_Strict):
    strategy: Literal["deployment"]
    spec: InstallSpec


class OwnedKinds(_Strict):
    owned: list[OwnedKind]


class OwnedApis(_Strict):
    owned: list[OwnedApi]


class Provider(_Strict):
    name: str


class Spec(_Strict):
    display_name: str = Field(min_length=1)
    version: Version
    replaces: str | None = None
    description: str = Field(min_length=1)
    maturity: Literal["planning", "pre-alpha", "alpha", "beta", "stable", "mature"]
    min_kube_version: Version
    keywords: list[str]
    provider: Provider
    icon: list[Icon] = Field(min_length=1, max_length=1)
    install_modes: list[InstallMode]
    related_images: list[RelatedImage]
    customresourcedefinitions: OwnedKinds = Field(alias="customresourcedefinitions")
    apiservicedefinitions: OwnedApis = Field(alias="apiservicedefinitions")
    webhookdefinitions: list[Webhook] = Field(alias="webhookdefinitions")
    install: Install

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        deployments = {one.name for one in self.install.spec.deployments}
        called = {one.deployment_name for one in (*self.webhookdefinitions, *self.apiservicedefinitions.owned)}
        if not called <= deployments:
            raise ValueError(f"no deployment is called {called - deployments}")
        if len({one.type for one in self.install_modes}) != 4 or len(self.install_modes) != 4:
            raise ValueError("each install mode must be there once")
        if not any(one.supported for one in self.install_modes):
            raise ValueError("no install mode is supported")
        return self


class Metadata(_Strict):
    name: Name
    namespace: Literal["placeholder"]
    annotations: dict[str, str]


class ClusterServiceVersion(_Strict):
    api_version: Literal["operators.coreos.com/v1alpha1"]
    kind: Literal["ClusterServiceVersion"]
    metadata: Metadata
    spec: Spec

    @model_validator(mode="after")
    def _says_what_catalogs_ask(self) -> Self:
        notes = self.metadata.annotations
        if not self.metadata.name.endswith(f".v{self.spec.version}"):
            raise ValueError("metadata.name must end with the version")
        if not re.match(r"^[a-z][a-z0-9-]*\.v\d", self.spec.replaces or self.metadata.name):
            raise ValueError("spec.replaces must name a version of the package")
        if notes["capabilities"] not in CAPABILITIES:
            raise ValueError(f"capabilities {notes['capabilities']} are none")
        if unknown := {one.strip() for one in notes["categories"].split(",")} - CATEGORIES:
            raise ValueError(f"there are no categories {unknown}")
        if len(notes["description"]) > 135:
            raise ValueError("consoles cut a description after 135 characters")
        return self
