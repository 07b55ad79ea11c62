"""Reads the type of alerts that are submitted without one."""

from tarsy.client.errors import ApiUseError
from tarsy.kube.client import KubeClient
from tarsy.resources.v1alpha1.investigation_defaults import DEFAULTS_NAME, InvestigationDefaults


async def default_alert_type(client: KubeClient, namespace: str) -> str:
    """Returns the type of alerts of a namespace that are submitted without one.

    Raises:
        ApiUseError: its InvestigationDefaults name none.
        ApiError: the Kubernetes API refuses the read, or is unavailable.
    """
    found = await client.find(InvestigationDefaults.KIND, namespace, DEFAULTS_NAME)
    alert_type = ((found or {}).get("spec") or {}).get("defaultAlertType")
    if not alert_type:
        which = f"InvestigationDefaults {namespace}/{DEFAULTS_NAME}"
        raise ApiUseError(f"{which} sets no defaultAlertType: give the --type of the alert", 400)
    return str(alert_type)
