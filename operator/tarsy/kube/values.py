"""Reads values that objects reference in Secrets and ConfigMaps, on use.

A ConfigMap is read anew for each use: it is small, seldom asked for, and whoever changes it wants the change to count.
Every problem is a sentence that names the object and the remedy, and none holds a value.
"""

from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.credentials import Secrets
from tarsy.llm.registry import SecretProblem
from tarsy.plan.model import ConfigMapKey, Value


class Values:
    """Resolves declared values: literal, in a Secret, or in a ConfigMap.

    Args:
        client: the Kubernetes API.
        secrets: reads Secrets.
    """

    def __init__(self, client: KubeClient, secrets: Secrets) -> None:
        self._client = client
        self._secrets = secrets

    async def __call__(self, value: Value) -> str:
        """Returns the value as text.

        Raises:
            SecretProblem: what it is in is missing or cannot be read, or lacks the key.
            ApiError: the Kubernetes API cannot be reached.
        """
        if value.secret is not None:
            return await self._secrets(value.secret)
        if value.config_map is not None:
            return await config_map_text(self._client, value.config_map)
        return value.value or ""


async def config_map_text(client: KubeClient, key: ConfigMapKey) -> str:
    """Reads the value of a ConfigMap's key.

    Raises:
        SecretProblem: the ConfigMap is missing or may not be read, or lacks the key.
        ApiError: the Kubernetes API cannot be reached.
    """
    where = f"ConfigMap {key.namespace}/{key.name}"
    try:
        found = await client.find("ConfigMap", key.namespace, key.name)
    except ApiError as error:
        if error.reason != "Forbidden":
            raise
        sentence = f"{where} may not be read by TARSy; grant it `get` on configmaps"
        raise SecretProblem("ConfigMapForbidden", sentence) from error
    if found is None:
        raise SecretProblem("ConfigMapMissing", f"{where} does not exist; create it")
    text = str((found.get("data") or {}).get(key.key) or "")
    if not text.strip():
        raise SecretProblem("ConfigMapKeyMissing", f"{where} has no text under data.{key.key}; fill it in")
    return text
