"""Builds the Investigation that replays a recorded one, for the API and for clients of the Kubernetes API.

Imports nothing but constants, so a command that writes no replay does not load the models of the kinds.
"""

from collections.abc import Mapping
from typing import Any, Final

from tarsy.resources.meta import API_VERSION

_GENERATED: Final = 40


def replay_manifest(
    namespace: str, investigation: str, replay: Mapping[str, Any], name: str | None = None
) -> dict[str, Any]:
    """Returns the Investigation that replays a recorded one.

    Args:
        namespace: of both.
        investigation: name of the recorded one.
        replay: the rest of `spec.replay`.
        name: name of the replay; None: a generated one.
    """
    named = {"name": name} if name else {"generateName": f"{investigation[:_GENERATED].rstrip('-.')}-replay-"}
    return {
        "apiVersion": API_VERSION,
        "kind": "Investigation",
        "metadata": {"namespace": namespace, **named},
        "spec": {"replay": {"of": {"name": investigation}, **replay}},
    }
