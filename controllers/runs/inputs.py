"""Reads the inputs of a run: the alert's data and the runbook, from where the objects declare them.

Decision: a text that an object names and that is not there keeps the run from being accepted, and says so; only a
runbook by URL fails open, because nobody here controls its host.
"""

from collections.abc import Awaitable, Callable, Iterator

from tarsy.kube.client import ApiError, KubeClient
from tarsy.plan.catalog import Catalog
from tarsy.plan.errors import FieldPath
from tarsy.plan.model import SecretKey
from tarsy.plan.resolve import defaults_for
from tarsy.plan.select import search_path
from tarsy.resources.v1alpha1 import InvestigationDefaults
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.common import ConfigMapKeyRef, LocalRunbook, Runbook
from tarsy.resources.v1alpha1.investigation_defaults import DEFAULTS_NAME
from tarsy.runbook.sources import RunbookSource

MAX_CONFIG_MAP_BYTES = 1_048_576
MAX_RUNBOOK_BYTES = 262_144


KeptText = Callable[[str, str], Awaitable[str | None]]
"""The text that the intake keeps for a namespace, by its SHA-256; None when it does not."""


class NotYet(Exception):
    """Raised when an object cannot be accepted yet; carries reason and message for `Accepted`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class BeingFetched(Exception):
    """Raised while an investigation's runbook is being fetched; the end of the fetch queues the investigation."""


async def no_text(namespace: str, digest: str) -> str | None:
    """Finds no text: for an operator without an intake."""
    return None


async def alert_data(alert: AlertContent, at: FieldPath, client: KubeClient, kept: KeptText = no_text) -> str:
    """Reads the alert's data.

    Args:
        alert: the alert.
        at: where it is.
        client: the Kubernetes API.
        kept: where the texts are that came over HTTP and were too large.

    Raises:
        NotYet: it is not where the alert says.
    """
    if alert.data is not None or alert.data_from is None:  # the kind's rules ask for exactly one of them
        return alert.data or ""
    source = alert.data_from
    if source.config_map_key_ref is None:
        text = await kept(at.namespace, source.record.digest) if source.record is not None else None
        if text is None:
            field = (at / "dataFrom" / "record").error("")
            where = f"{field.kind} {field.namespace}/{field.name}: {field.field}"
            raise NotYet(
                "AlertTextMissing", f"{where}: the text of this alert is no longer stored; send the alert again"
            )
        return text
    return await _config_map(source.config_map_key_ref, at / "dataFrom", MAX_CONFIG_MAP_BYTES, client)


async def local_runbook(
    alert: AlertContent, at: FieldPath, catalog: Catalog, client: KubeClient, library_namespace: str
) -> str:
    """Reads the alert's own runbook, inline or in a ConfigMap, else the default.

    Args:
        alert: the alert.
        at: the field that holds it.
        catalog: holds the InvestigationDefaults.
        client: the Kubernetes API.
        library_namespace: whose defaults all namespaces use.

    Raises:
        NotYet: it is not where the alert, or the defaults, say.
    """
    if alert.runbook is not None:
        return await _read(alert.runbook, at / "runbook", client)
    return await default_runbook(at.namespace, catalog, client, library_namespace)


async def default_runbook(namespace: str, catalog: Catalog, client: KubeClient, library_namespace: str) -> str:
    """Reads the runbook of the namespace's defaults, else of the library's; empty when neither has one.

    Args:
        namespace: of the run.
        catalog: holds the InvestigationDefaults.
        client: the Kubernetes API.
        library_namespace: whose defaults all namespaces use.

    Raises:
        NotYet: it is not where the defaults say.
    """
    for space in search_path(namespace, library_namespace):
        defaults = catalog.get(InvestigationDefaults, space, DEFAULTS_NAME)
        if defaults is not None and defaults.spec.runbook is not None:
            return await _read(defaults.spec.runbook, FieldPath.of(defaults) / "runbook", client)
    return ""


def namespace_sources(namespace: str, catalog: Catalog, library_namespace: str) -> Iterator[RunbookSource]:
    """Lists the hosts that a namespace's defaults allow runbooks from, with the Secrets of their tokens.

    Args:
        namespace: of the run.
        catalog: holds the InvestigationDefaults.
        library_namespace: whose defaults all namespaces use.
    """
    defaults = defaults_for(namespace, catalog, library_namespace)
    for entry in defaults.spec.runbook_hosts if defaults is not None else ():
        ref = entry.token_secret_ref
        place = defaults.metadata.namespace if defaults is not None else namespace
        yield RunbookSource(entry.host, token=SecretKey(namespace=place, name=ref.name, key=ref.key) if ref else None)


async def _read(runbook: Runbook | LocalRunbook, at: FieldPath, client: KubeClient) -> str:
    if runbook.config_map_key_ref is not None:
        return await _config_map(runbook.config_map_key_ref, at, MAX_RUNBOOK_BYTES, client)
    return runbook.inline or ""


async def _config_map(reference: ConfigMapKeyRef, at: FieldPath, limit: int, client: KubeClient) -> str:
    field = (at / "configMapKeyRef").error("")
    where = f"{field.kind} {field.namespace}/{field.name}: {field.field}: ConfigMap {at.namespace}/{reference.name}"
    try:
        found = await client.find("ConfigMap", at.namespace, reference.name)
    except ApiError as error:
        if error.reason != "Forbidden":
            raise
        raise NotYet("ConfigMapForbidden", f"{where} may not be read by TARSy; grant it `get` on configmaps") from error
    if found is None:
        raise NotYet("ConfigMapMissing", f"{where} does not exist; create it")
    text = (found.get("data") or {}).get(reference.key)
    if text is None:
        raise NotYet("ConfigMapKeyMissing", f"{where} has no key {reference.key} under data; add it")
    if not text.strip():
        raise NotYet("ConfigMapKeyEmpty", f"{where}: key {reference.key} is empty; fill it in")
    if len(text.encode()) > limit:
        raise NotYet("ConfigMapTooLarge", f"{where}: key {reference.key} has more than {limit} bytes; shorten it")
    return str(text)
