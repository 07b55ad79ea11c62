"""Builds the Investigation that runs another one again, for the API and for clients of the Kubernetes API.

Decision: the alert is taken from the object, never from the record, because the text in the record is masked and cut.
Imports nothing but constants, so a command that retries nothing does not load the models of the kinds.
"""

from collections.abc import Mapping
from typing import Any, Final

from tarsy.resources.meta import API_VERSION

_GENERATED: Final = 40
_COPIED: Final = ("alertRef", "alert", "chainRef", "llmProviderRef", "budget")


class NotRetried(Exception):
    """An Investigation that cannot be run again; the message says why and what to do instead."""


def retry_manifest(
    found: Mapping[str, Any], chain: str | None = None, provider: str | None = None, name: str | None = None
) -> dict[str, Any]:
    """Returns the Investigation that investigates the alert of another one anew.

    Args:
        found: the Investigation to run again.
        chain: name of the Chain; None: as for the first run.
        provider: name of the LLMProvider of all agents; None: as for the first run.
        name: name of the new Investigation; None: a generated one.

    Raises:
        NotRetried: it has not finished, or it is a replay.
    """
    meta, spec = found["metadata"], found["spec"]
    which = f"investigation {meta['namespace']}/{meta['name']}"
    if "replay" in spec:
        raise NotRetried(f"{which} is a replay; start a replay of the recorded investigation instead")
    conditions = (found.get("status") or {}).get("conditions") or ()
    if not any(one["type"] == "Finished" and one["status"] == "True" for one in conditions):
        raise NotRetried(f"{which} has not finished; wait for its end or cancel it, then run it again")
    named = {"name": name} if name else {"generateName": f"{meta['name'][:_GENERATED].rstrip('-.')}-retry-"}
    copied = {field: spec[field] for field in _COPIED if field in spec}
    return {
        "apiVersion": API_VERSION,
        "kind": "Investigation",
        "metadata": {"namespace": meta["namespace"], **named},
        "spec": {
            **copied,
            **({"chainRef": {"name": chain}} if chain else {}),
            **({"llmProviderRef": {"name": provider}} if provider else {}),
            "retryOf": {"name": meta["name"], "uid": meta["uid"]},
        },
    }


def alert_gone(found: Mapping[str, Any]) -> NotRetried:
    """Returns the error for an Investigation whose Alert does not exist any more."""
    meta, alert = found["metadata"], found["spec"]["alertRef"]["name"]
    return NotRetried(
        f"Alert {meta['namespace']}/{alert} of investigation {meta['name']} was deleted or has expired; "
        "submit the alert again"
    )
