"""Writes the cassette of an investigation to a file (`eval export NAME -o FILE`).

Decision: the file is created beside its place and renamed, so that a file of this name is always a whole cassette.
"""

import base64
import os
from pathlib import Path

from tarsy.cli.output import printer
from tarsy.client.api import TarsyClient, read_as, run_path
from tarsy.client.errors import ApiUseError
from tarsy.client.refusals import READ_TRACE
from tarsy.http.views.trace import CassetteView


async def write_exported(client: TarsyClient, namespace: str, name: str, file: Path) -> int:
    """Exports an investigation; returns the exit status.

    Args:
        client: the API.
        namespace: the namespace of the investigation.
        name: the name of the investigation.
        file: where the cassette is written.

    Raises:
        ApiUseError: the investigation may not be read, has not finished, or the file cannot be written.
    """
    found = await read_as(client, CassetteView, run_path(namespace, name, "trace/cassette"), READ_TRACE)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        part.write_bytes(base64.b64decode(found.cassette))
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ApiUseError(f"{file} cannot be written: {error.strerror}") from None
    printer().print(f"{file}: {found.calls:,} tool calls of {namespace}/{name}")
    return 0
