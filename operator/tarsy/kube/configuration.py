"""Loads the configuration of a cluster: address and credentials of its API."""

import contextlib
from pathlib import Path
from typing import Any

import yaml
from kubernetes.aio import config as kube_config
from kubernetes.aio.client import Configuration

from tarsy.kube.configuration_errors import text_without_content

_PLACE = (
    "host",
    "ssl_ca_cert",
    "ca_cert_data",
    "verify_ssl",
    "disable_strict_ssl_verification",
    "assert_hostname",
    "tls_server_name",
    "proxy",
    "proxy_headers",
)
"""Fields of a configuration about the API's address, without credentials."""


class NoConfiguration(Exception):
    """No configuration could be loaded; the message says where was looked."""


async def load_configuration(kubeconfig: str | Path | None, context: str | None) -> tuple[Configuration, Any]:
    """Loads a configuration, and what refreshes it where tokens come from a plugin.

    Args:
        kubeconfig: the file; None: the pod's ServiceAccount, else the default kubeconfig.
        context: of the kubeconfig; None: its current one.

    Raises:
        NoConfiguration: there is none, or it cannot be used.
    """
    configuration = Configuration()
    try:
        if kubeconfig is None and context is None:
            with contextlib.suppress(kube_config.ConfigException):
                kube_config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
                return configuration, None
        loader = await kube_config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=str(kubeconfig) if kubeconfig else None,
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
    except (kube_config.ConfigException, yaml.YAMLError, OSError, ValueError, TypeError) as error:
        where = kubeconfig or "the pod's ServiceAccount and the default kubeconfig"
        raise NoConfiguration(f"no usable cluster configuration in {where}: {text_without_content(error)}") from None
    return configuration, loader


def without_credentials(known: Configuration) -> Configuration:
    """Returns a configuration of the same API without anyone's credentials."""
    nobody = Configuration()
    for field in _PLACE:
        setattr(nobody, field, getattr(known, field))
    nobody.api_key = {}
    return nobody
