"""Runs an investigation again and prints the name of the new one (`retry NAME`)."""

from tarsy.cli.output import Output, for_programs, printer, write_output
from tarsy.client.api import TarsyClient


async def start_retry(
    client: TarsyClient, namespace: str, name: str, output: Output, *, chain: str | None, provider: str | None
) -> int:
    """Creates an Investigation of the same alert; returns the exit status.

    Args:
        client: the API.
        namespace: the namespace of the investigation.
        name: the name of the investigation to run again.
        output: for people, or the format for programs.
        chain: the Chain to run; None: the same.
        provider: the LLMProvider that all its agents use; None: as before.

    Raises:
        ApiUseError: it may not be created, or the alert does not exist any more.
    """
    made = await client.retry(namespace, name, chain, provider)
    if for_programs(output):
        write_output({"namespace": namespace, "name": made.name, "uid": made.uid, "retryOf": name}, output)
    else:
        printer().print(f"investigation.tarsy.dev/{made.name}")
    return 0
