"""Tests waiting for the operator of a stack."""

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
