"""A person asks in Slack about an investigation, by the whole product with its rights and its admission in force."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import rights
from apis import ApiKind
from e2e.waiting import until
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.credentials import LABEL
from tarsy.resources.meta import API_VERSION
from tarsy_dev.kubectl import run_kubectl
from tarsy_dev.model import Script, demo_script
from tarsy_dev.objects import manifest, put, put_all
from tarsy_dev.sample import let_agents_read
from tarsy_dev.serving import until_serving
from tarsy_dev.stack import LIBRARY, Stack, bind_secret_role, running_stack
from wire.slack import APP_TOKEN, BOT_TOKEN, TEAM, Slack, slack_server

pytestmark = [pytest.mark.timeout(900), pytest.mark.heavy("an installation of its own")]

SHOP = "shop"
ALICE, EVE = "U0000ALICE1", "U00000EVE01"
ANSWER = "The key *PAYMENTS_URL* was renamed. Tell <!channel>."


@pytest.fixture
async def stack(api_kind: ApiKind) -> AsyncIterator[Stack]:
    """An installation whose library notifies Slack."""
    async with running_stack(durable=False, api=api_kind) as stack:
        await stack.install()
        await put_all(stack.client, manifest("samples/demo/crashloop.yaml"))
        await let_agents_read(stack.client, SHOP)
        script = demo_script()
        agents = {**script.agents, "chat-agent": [{"text": ANSWER}]}
        changes = {"agents": agents, "first_token_ms": 0, "per_token_ms": 0}
        await stack.use_model(Script.model_validate(script.model_dump(by_alias=True) | changes))
        bound = rights.binding("on-call", SHOP, "ClusterRole", "tarsy-investigator", rights.group("on-call"))
        await rights.put_rights(stack.client, [bound, *manifest("components/slack/role.yaml")])
        yield stack


def options(slack: Slack, folder: Path) -> list[str]:
    """The operator's options, and the files that they name."""
    (folder / "app-token").write_text(APP_TOKEN)
    (folder / "bot-token").write_text(BOT_TOKEN)
    users = f"team: {TEAM}\nusers:\n- {{slack: {ALICE}, username: alice, groups: [on-call]}}\n"
    (folder / "users.yaml").write_text(users)
    return [
        f"--slack-app-token-file={folder / 'app-token'}",
        f"--slack-bot-token-file={folder / 'bot-token'}",
        f"--slack-users-file={folder / 'users.yaml'}",
        f"--slack-api-url={slack.api}",
        "--page-url=https://tarsy.example.org",
    ]


async def notify(stack: Stack, slack: Slack) -> None:
    """Lets the chain of the demo notify Slack."""
    await bind_secret_role(stack.client, LIBRARY)
    meta = {"name": "slack", "namespace": LIBRARY, "labels": {LABEL: "true"}}
    data = {"token": base64.b64encode(BOT_TOKEN.encode()).decode()}
    await put(stack.client, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})
    reference = {"name": "slack", "key": "token"}
    target = {"channel": "#alerts", "tokenSecretRef": reference, "apiUrl": slack.api}
    spec = {"notify": [{"name": "people", "slack": target}]}
    await stack.client.patch("Chain", LIBRARY, "kubernetes", {"spec": spec})


async def messages(stack: Stack) -> list[dict[str, Any]]:
    return await stack.client.list("ChatMessage", SHOP)


async def test_a_question_in_the_thread_of_an_alert_is_answered_there_though_the_operator_is_killed(
    stack: Stack, tmp_path: Path
) -> None:
    async with slack_server() as slack:
        operator = stack.operator(*options(slack, tmp_path))
        try:
            await until_serving(stack)
            await notify(stack, slack)
            (alert,) = manifest("samples/demo/alert-kubepodcrashlooping.yaml")
            alert["metadata"]["namespace"] = SHOP
            await stack.client.create(alert)
            await slack.wait_for(lambda: slack.of("chat.postMessage"), 200)

            async def noted() -> bool:
                return "Notified" in {event["reason"] for event in await stack.client.list("Event", SHOP)}

            await until("the thread is noted", noted)
            (told,) = slack.of("chat.postMessage")
            thread = told["ts"]

            assert await slack.deliver(slack.mention("Who renamed the key?", ALICE, thread))
            operator.kill()
            await operator.wait(10)
            operator.start()
            await until_serving(stack)
            await slack.wait_for(lambda: len(slack.of("chat.postMessage")) == 2, 200)

            assert await slack.deliver(slack.mention("approve", ALICE, thread))
            assert await slack.deliver(slack.mention("Who renamed the key?", EVE, thread))
            await slack.wait_for(lambda: len(slack.of("chat.postEphemeral")) == 2, 60)

            async with await KubeClient.load(stack.api.kubeconfig_for("alice", ["on-call"])) as alice:
                (message,) = await messages(stack)
                spec = {"investigationRef": message["spec"]["investigationRef"], "question": "Why?", "via": "Slack"}
                meta = {"name": "forged", "namespace": SHOP}
                forged = {"apiVersion": API_VERSION, "kind": "ChatMessage", "metadata": meta, "spec": spec}
                with pytest.raises(ApiError, match=r"spec\.via: only the operator sets it; omit it"):
                    await alice.create(forged)
        finally:
            await operator.stop()

    (message,) = await messages(stack)
    assert message["spec"]["author"] == {"username": "alice", "groups": ["on-call", "system:authenticated"]}
    assert (message["spec"]["via"], message["status"]["phase"]) == ("Slack", "Succeeded")
    first, answer = slack.of("chat.postMessage")
    assert "thread_ts" not in first and answer["thread_ts"] == thread
    assert answer["blocks"][0]["text"]["text"] == "The key *PAYMENTS_URL* was renamed. Tell &lt;!channel&gt;."
    assert "https://tarsy.example.org/#/investigations/shop/" in str(answer["blocks"][1])
    texts = {one["user"]: one["text"] for one in slack.of("chat.postEphemeral")}
    assert "cannot be approved" in texts[ALICE] and "I do not know your user" in texts[EVE]
    log = stack.operator_log.read_text()
    assert BOT_TOKEN not in log and APP_TOKEN not in log
    wide = await run_kubectl(stack, ["get", "tchat", "-n", SHOP, "-o", "wide"])
    assert "Slack" in wide


async def test_until_there_is_a_token_nothing_is_opened(stack: Stack, tmp_path: Path) -> None:
    async with slack_server() as slack:
        chosen = options(slack, tmp_path)
        (tmp_path / "app-token").unlink()
        operator = stack.operator(*chosen)
        try:
            await until_serving(stack)

            async def active() -> bool:
                return "is the active controller" in stack.operator_log.read_text()

            await until("the controller is active", active)
        finally:
            await operator.stop()
        assert slack.opened == 0
