"""Sets the desired state of an investigation (`cancel NAME`, `conclude NAME`)."""

from tarsy.cli.output import Output, for_programs, printer, write_output
from tarsy.client.api import TarsyClient

_SENTENCES = {
    "Cancelled": "is being cancelled: it stops now, without a finding",
    "Concluded": "is being concluded: it stops now and summarizes the evidence it has",
}


async def want(client: TarsyClient, namespace: str, name: str, desired: str, output: Output) -> int:
    """Sets the desired state of an investigation; returns the exit status.

    Args:
        client: the API.
        namespace: the namespace of the investigation.
        name: the name of the investigation.
        desired: Concluded or Cancelled.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: the investigation does not exist, or its desired state may not be changed so.
    """
    questions = await client.want(namespace, name, desired)
    if for_programs(output):
        told = {"namespace": namespace, "name": name, "desiredState": desired}
        write_output({**told, **({"questions": questions} if questions else {})}, output)
    elif questions:
        for question in questions:
            printer().print(f"chatmessage.tarsy.dev/{question} is being cancelled: it stops without an answer")
    else:
        printer().print(f"investigation.tarsy.dev/{name} {_SENTENCES[desired]}")
    return 0
