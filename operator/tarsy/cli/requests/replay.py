"""Creates a replay of an investigation and prints its name (`replay NAME`).

It is an object that the user creates with their own rights, so acceptance judges their right to the trace, to the chain
and to the provider.
"""

from typing import Any

from tarsy.cli.output import Output, for_programs, printer, write_output
from tarsy.client.api import TarsyClient
from tarsy.resources.v1alpha1.investigation import OnMiss


async def start_replay(
    client: TarsyClient,
    namespace: str,
    name: str,
    output: Output,
    *,
    chain: str | None,
    provider: str | None,
    on_miss: OnMiss,
) -> int:
    """Creates a replay; returns the exit status.

    Args:
        client: the API.
        namespace: the namespace of the investigation.
        name: the name of the recorded investigation.
        output: for people, or the format for programs.
        chain: the Chain that the replay runs; None: the recorded one.
        provider: the LLMProvider that all its agents use; None: their own.
        on_miss: what happens to a call that is not recorded.

    Raises:
        ApiUseError: the replay may not be created.
    """
    made = await client.replay(namespace, name, replay_fields(chain, provider, on_miss))
    if for_programs(output):
        write_output({"namespace": namespace, "name": made.name, "uid": made.uid, "replayOf": name}, output)
    else:
        printer().print(f"investigation.tarsy.dev/{made.name}")
    return 0


def replay_fields(chain: str | None, provider: str | None, on_miss: OnMiss) -> dict[str, Any]:
    """Returns the fields of `spec.replay` that options set.

    Args:
        chain: name of the Chain to replay with; None: the recorded plan's.
        provider: name of the LLMProvider; None: the recorded one.
        on_miss: what happens to a call without a recorded result.
    """
    named = {"chainRef": chain, "llmProviderRef": provider}
    overrides = {field: {"name": name} for field, name in named.items() if name is not None}
    return {"onMiss": on_miss, **({"overrides": overrides} if overrides else {})}
