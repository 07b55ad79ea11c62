"""Tests waiting for the operator of a stack, and what it opens to the network."""

import re
from pathlib import Path

import pytest

from tarsy.kube.access import ResourceAttributes, Subject, may
from tarsy_dev.apiserver.errors import LocalKubernetesError
from tarsy_dev.serving import until_serving
from tarsy_dev.stack import running_stack


@pytest.mark.heavy("an operator of its own; one that serves is beside it")
async def test_an_operator_that_does_not_serve_is_told_with_the_last_refusal_and_its_log() -> None:
    async with running_stack(durable=False, api="embedded") as stack:
        await stack.install()
        stack.operator_log.write_text("2026-11-23 the schema is newer than this version\n")
        with pytest.raises(LocalKubernetesError) as told:
            await until_serving(stack, seconds=1.0)
        assert "did not serve within 1 s" in str(told.value)
        assert "author.tarsy.dev" in str(told.value), "the webhook that nobody serves"
        assert "the schema is newer than this version" in str(told.value)


async def test_whoever_is_at_the_machine_may_do_all_but_name_another_as_author() -> None:
    async with running_stack(durable=False, api="embedded") as stack:
        await stack.install()
        subject = Subject(stack.person, "", ("system:authenticated",))
        for verb in ("get", "create", "delete", "patch", "use", "impersonate"):
            assert await may(stack.client, subject, ResourceAttributes(verb, "tarsy.dev", "alerts", namespace="any")), (
                verb
            )
        assert not await may(
            stack.client, subject, ResourceAttributes("attribute", "tarsy.dev", "alerts", namespace="any")
        )


@pytest.mark.heavy("an operator of its own; only on this machine are its ports opened")
async def test_the_operator_of_a_stack_listens_on_loopback_only() -> None:
    async with running_stack(durable=False, api="embedded") as stack:
        await stack.install()
        operator = stack.operator()
        try:
            await until_serving(stack)
            addresses = _listening(operator.pid)
        finally:
            operator.terminate()
    assert len(addresses) >= 4, "the HTTP API, the aggregated API, the webhook and the health port"
    assert set(addresses) == {"127.0.0.1"}


def _listening(pid: int) -> list[str]:
    """Returns the addresses of the TCP sockets on which a process accepts connections; an IPv6 one in hexadecimal."""
    links = [str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir() if one.is_symlink()]
    own = {number for link in links if (number := link.removeprefix("socket:[").removesuffix("]")).isdigit()}
    found: list[str] = []
    for family in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{family}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in own:
                address = fields[1].partition(":")[0]
                parts = re.findall("..", address)
                found.append(".".join(str(int(part, 16)) for part in reversed(parts)) if family == "tcp" else address)
    return found
