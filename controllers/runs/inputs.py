"""Reads the inputs of a run: the alert's data and the runbook, from where the objects declare them.

Decision: a text that an object names and that is not there keeps the run from being accepted, and says so; only a
runbook by URL fails open, because nobody here controls its host. One in Git does not: its commit is pinned, so that it
is there, or never was.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tarsy.kube.client import ApiError, KubeClient
from tarsy.plan.catalog import Catalog
from tarsy.plan.errors import FieldPath
from tarsy.plan.model import SecretKey
from tarsy.plan.resolve import defaults_for
from tarsy.plan.select import search_path
from tarsy.resources.v1alpha1 import Chain, InvestigationDefaults
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.common import ConfigMapKeyRef, LocalRunbook, Runbook
from tarsy.resources.v1alpha1.git_source import GitSource
from tarsy.resources.v1alpha1.investigation_defaults import DEFAULTS_NAME
from tarsy.runbook.sources import RunbookSource

MAX_CONFIG_MAP_BYTES = 1_048_576
MAX_RUNBOOK_BYTES = 262_144
RUNBOOK_LABEL = "tarsy.dev/runbook"
"""Label of a ConfigMap that replaces the runbook of a shared chain in its own namespace; any value."""

RUNBOOK_KEY = "runbook.md"

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
    return await config_map_value(source.config_map_key_ref, at / "dataFrom", MAX_CONFIG_MAP_BYTES, client)


@dataclass(frozen=True, slots=True)
class TextSources:
    """Reads the texts that objects name: from ConfigMaps, and from Git.

    `git` takes the file, the field that names it, and the maximum bytes; None: nothing is read from Git.
    """

    client: KubeClient
    git: Callable[[GitSource, FieldPath, int], Awaitable[str]] | None = None


async def local_runbook(
    alert: AlertContent, at: FieldPath, chain: Chain, catalog: Catalog, texts: TextSources, library_namespace: str
) -> str:
    """Reads the alert's own runbook, inline, in a ConfigMap or in Git, else the default.

    Args:
        alert: the alert.
        at: the field that holds it.
        chain: the chain of the run.
        catalog: holds the InvestigationDefaults.
        texts: reads them.
        library_namespace: whose defaults all namespaces use.

    Raises:
        NotYet: it is not where the alert, the chain or the defaults say.
    """
    if alert.runbook is not None:
        return await _read(alert.runbook, at / "runbook", texts)
    return await default_runbook(at.namespace, chain, catalog, texts, library_namespace)


async def default_runbook(
    namespace: str, chain: Chain, catalog: Catalog, texts: TextSources, library_namespace: str
) -> str:
    """Reads the runbook for an alert without one; empty when there is none.

    The namespace of the run goes before the library's. In each, the chain's runbook goes before that of the defaults.
    In a namespace that is not the chain's, a labelled ConfigMap is the chain's runbook.

    Args:
        namespace: of the run.
        chain: the chain of the run.
        catalog: holds the InvestigationDefaults.
        texts: reads them.
        library_namespace: whose defaults all namespaces use.

    Raises:
        NotYet: it is not where the chain or the defaults say.
    """
    for space in search_path(namespace, library_namespace):
        if chain.spec.runbook is not None:
            if space == chain.metadata.namespace:
                return await _read(chain.spec.runbook, FieldPath.of(chain) / "runbook", texts)
            if replaced := await _replacement(chain, space, texts.client):
                return replaced
        defaults = catalog.get(InvestigationDefaults, space, DEFAULTS_NAME)
        if defaults is not None and defaults.spec.runbook is not None:
            return await _read(defaults.spec.runbook, FieldPath.of(defaults) / "runbook", texts)
    return ""


async def _replacement(chain: Chain, namespace: str, client: KubeClient) -> str | None:
    """Reads the labelled ConfigMap that replaces a chain's runbook; None without one, or where it may not be read."""
    name = f"tarsy-runbook-{chain.metadata.name}"
    try:
        found = await client.find("ConfigMap", namespace, name)
    except ApiError as error:
        if error.reason != "Forbidden":
            raise
        return None
    if found is None or RUNBOOK_LABEL not in ((found.get("metadata") or {}).get("labels") or {}):
        return None
    where = f"ConfigMap {namespace}/{name}: label {RUNBOOK_LABEL}: it replaces the runbook of {chain}, but"
    return _text(found, RUNBOOK_KEY, where, MAX_RUNBOOK_BYTES)


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


async def _read(runbook: Runbook | LocalRunbook, at: FieldPath, texts: TextSources) -> str:
    if runbook.config_map_key_ref is not None:
        return await config_map_value(runbook.config_map_key_ref, at, MAX_RUNBOOK_BYTES, texts.client)
    if runbook.git is not None and texts.git is not None:
        return await texts.git(runbook.git, at / "git", MAX_RUNBOOK_BYTES)
    return runbook.inline or ""


async def config_map_value(reference: ConfigMapKeyRef, at: FieldPath, limit: int, client: KubeClient) -> str:
    """Reads a text from a ConfigMap.

    Args:
        reference: names the key.
        at: the field above configMapKeyRef.
        limit: maximum bytes.
        client: the Kubernetes API.

    Raises:
        NotYet: it is not there, may not be read, or is empty or too large.
    """
    field = (at / "configMapKeyRef").error("")
    where = f"{field.kind} {field.namespace}/{field.name}: {field.field}: ConfigMap {at.namespace}/{reference.name}"
    return _text(await find_config_map(at.namespace, reference.name, where, client), reference.key, where, limit)


async def find_config_map(namespace: str, name: str, where: str, client: KubeClient) -> Mapping[str, Any]:
    """Reads a ConfigMap that a field names.

    Args:
        namespace: of the ConfigMap.
        name: of the ConfigMap.
        where: begins the sentence of an error: the field and the ConfigMap.
        client: the Kubernetes API.

    Raises:
        NotYet: it is not there, or may not be read.
    """
    try:
        found = await client.find("ConfigMap", namespace, name)
    except ApiError as error:
        if error.reason != "Forbidden":
            raise
        raise NotYet("ConfigMapForbidden", f"{where} may not be read by TARSy; grant it `get` on configmaps") from error
    if found is None:
        raise NotYet("ConfigMapMissing", f"{where} does not exist; create it")
    return found


def _text(found: Mapping[str, Any], key: str, where: str, limit: int) -> str:
    text = (found.get("data") or {}).get(key)
    if text is None:
        raise NotYet("ConfigMapKeyMissing", f"{where} has no key {key} under data; add it")
    if not text.strip():
        raise NotYet("ConfigMapKeyEmpty", f"{where}: key {key} is empty; fill it in")
    if len(text.encode()) > limit:
        raise NotYet("ConfigMapTooLarge", f"{where}: key {key} has more than {limit} bytes; shorten it")
    return str(text)
