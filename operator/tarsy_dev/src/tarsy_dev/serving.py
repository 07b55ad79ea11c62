"""Waits until the operator of a stack serves: its HTTP API, and the admission of new alerts."""

import asyncio

import aiohttp

from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.meta import API_VERSION
from tarsy_dev.apiserver.errors import LocalKubernetesError
from tarsy_dev.stack import Stack

SERVE_SECONDS = 120.0
_POLL_SECONDS = 0.05
_LOG_CHARACTERS = 2_000
_PROBE = {
    "apiVersion": API_VERSION,
    "kind": "Alert",
    "metadata": {"name": "probe", "namespace": "default"},
    "spec": {"alertType": "Probe", "data": "is admission served?"},
}
"""An Alert that is created as a dry run only."""


async def until_serving(stack: Stack, seconds: float = SERVE_SECONDS) -> None:
    """Returns when the local user can create alerts and the HTTP API answers.

    Raises:
        LocalKubernetesError: not in time; the message has the last refusal and the end of the operator's log.
    """
    last = "no request was made yet"
    try:
        async with asyncio.timeout(seconds):
            async with await KubeClient.load(stack.person_kubeconfig) as person, aiohttp.ClientSession() as http:
                while last:
                    last = await _refusal(stack, person, http)
                    await asyncio.sleep(_POLL_SECONDS if last else 0)
    except TimeoutError:
        log = stack.operator_log
        end = log.read_text(errors="replace")[-_LOG_CHARACTERS:] if log.exists() else ""
        text = f"the operator did not serve within {seconds:g} s ({last}); its log, {log}, ends:\n{end}"
        raise LocalKubernetesError(text) from None


async def _refusal(stack: Stack, person: KubeClient, http: aiohttp.ClientSession) -> str:
    """Returns why the operator does not serve yet; empty if it does."""
    try:
        made = await person.create(_PROBE, dry_run=True)
        async with http.get(f"{stack.http_url}/health") as answer:
            if answer.status != 200:
                return f"the HTTP API answers {answer.status}"
    except ApiError as error:
        return error.message
    except aiohttp.ClientError as error:
        return f"the HTTP API does not answer: {error}"
    author = made["spec"].get("author") or {}
    return "" if author.get("username") == stack.person or not stack.admits else "admission does not stamp authors"
