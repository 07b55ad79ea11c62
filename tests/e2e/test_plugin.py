"""Runs the commands of the plugin as a person who has the role of an investigator and no other."""

import asyncio
import json
import os
import signal
import sys

import aiohttp
import pytest
import yaml

from e2e.forked import Answer
from e2e.person import Person, kubeconfig_with, new_person, new_robot, said
from e2e.tenant import SUMMARY, Tenant, answer
from e2e.waiting import until
from tarsy.kube.client import ApiError

pytestmark = pytest.mark.timeout(600)
ONCE = pytest.mark.once("others of this file are shown on both")
SCRIPT = f"""
agents:
  agent:
    - text: I look.
      calls: [{{name: tools.look, arguments: {{what: df}}}}]
    - text: {answer("High", ("tools.look", "look saw df"))}
  chat-agent:
    - text: I look again.
      calls: [{{name: tools.look, arguments: {{what: now}}}}]
    - text: It is still full.
"""
HELD = SCRIPT.replace("{what: df}}]\n", "{what: df}}]\n      gate: held\n")


def alert(name: str = "disk") -> str:
    """The manifest of an alert that the tenant's chain takes."""
    return yaml.safe_dump(
        {
            "apiVersion": "tarsy.dev/v1alpha1",
            "kind": "Alert",
            "metadata": {"name": name},
            "spec": {
                "alertType": "DiskFull",
                "data": "node-1: the disk is full",
                "chainRef": {"name": "chain"},
            },
        }
    )


async def ready(tenant: Tenant, script: str = SCRIPT) -> None:
    """A chain whose tool only reads, so that questions may use it."""
    await tenant.use_model(script)
    await tenant.use_tools(tools={"readOnly": ["look"]})
    await tenant.use_agent("agent", "tools")
    await tenant.use_chain(["agent"])
    await until("both doors are open", lambda: open_doors(tenant))


async def open_doors(tenant: Tenant) -> bool:
    """Whether the operator answers directly, and through the Kubernetes API."""
    try:
        async with aiohttp.ClientSession() as http:
            async with http.get(f"http://127.0.0.1:{tenant.machine.http_port}/ready") as answer:
                direct = answer.status == 200
        return direct and bool(await tenant.client.read("/apis/record.tarsy.dev/v1alpha1"))
    except (aiohttp.ClientError, ApiError):
        return False


async def test_an_investigator_submits_follows_asks_why_and_asks_back_and_reads_no_trace(tenant: Tenant) -> None:
    await ready(tenant)
    ada = await new_person(tenant, "ada", "tarsy-investigator")

    submitted = await said(await ada.start("alerts", "submit", "-f", "-", "--wait"), alert())
    assert submitted.status == 0, submitted
    assert "look saw df" in submitted.out
    assert f"Finding (High): {SUMMARY}" in submitted.out
    told = await ada.tarsy("alerts", "submit", "-f", "-", "-o", "json", stdin=alert("second"))
    name = json.loads(told.out)["investigation"]

    followed = await ada.tarsy("timeline", f"inv/{name}", "-f")
    assert followed.status == 0, followed
    assert followed.out.count("look saw df") == 1 + 1  # the call, and the finding that quotes it
    read = await ada.tarsy("timeline", name, "-o", "json")
    document = json.loads(read.out)
    assert document["investigation"]["state"] == "completed"
    assert [event["type"] for event in document["items"]].count("llm_tool_call") == 1

    why = await ada.tarsy("why", name)
    assert why.status == 0, why
    assert "supported" in why.out and "look saw df" in why.out
    assert "hidden" in why.out and "tarsy-tracer" in why.out
    asked = await ada.tarsy("chat", name, "Is it still full?")
    assert asked.status == 0, asked
    assert asked.out.splitlines()[-1] == "It is still full."
    with_question = await ada.tarsy("timeline", name)
    assert "Is it still full?" in with_question.out and "It is still full." in with_question.out

    refused = await ada.tarsy("trace", name)
    assert refused.status == 1, refused
    assert "tarsy-tracer" in refused.err and f"-n {tenant.namespace}" in refused.err
    assert "Traceback" not in refused.err
    used = await ada.tarsy("usage", "-o", "json")
    (item,) = json.loads(used.out)["items"]
    assert (item["investigations"], item["questions"], item["toolCalls"]) == (2, 1, 3)


async def test_an_investigator_cancels_one_and_concludes_another(tenant: Tenant) -> None:
    await ready(tenant, HELD)
    ada = await new_person(tenant, "ada", "tarsy-investigator")
    names = []
    for one in ("first", "second"):
        told = await ada.tarsy("alerts", "submit", "-f", "-", "-o", "yaml", stdin=alert(one))
        assert told.status == 0, told
        names.append(yaml.safe_load(told.out)["investigation"])
    await tenant.asked(2, 60)

    cancelled = await ada.tarsy("cancel", names[0])
    concluded = await ada.tarsy("conclude", f"investigations.tarsy.dev/{names[1]}")
    assert (cancelled.status, concluded.status) == (0, 0), (cancelled, concluded)
    tenant.model.open_gate("held")
    inv = await tenant.finished(names[0])
    assert inv["status"]["phase"] == "Cancelled"
    assert (await tenant.finished(names[1]))["spec"]["desiredState"] == "Concluded"
    why = await ada.tarsy("why", names[0])
    assert why.status == 1 and "left no finding" in why.err
    again = await ada.tarsy("conclude", names[0])
    assert again.status == 1 and "has ended: Cancelled" in again.err


@ONCE
async def test_interrupted_command_says_that_the_investigation_goes_on_and_it_does(tenant: Tenant) -> None:
    await ready(tenant, HELD)
    ada = await new_person(tenant, "ada", "tarsy-investigator")
    process = await ada.start("alerts", "submit", "-f", "-", "--wait")
    assert process.stdin is not None
    process.stdin.write(alert().encode())
    process.stdin.close()
    await tenant.asked(1, 60)
    assert process.stdout is not None
    async with asyncio.timeout(60):
        while b"investigation.tarsy.dev/" not in (line := await process.stdout.readline()):
            assert line, "the command ended"
    name = line.decode().strip().partition("/")[2]
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    err = (await process.stderr.read()).decode()
    assert await process.wait() == 130, err
    assert f"investigation {tenant.namespace}/{name} continues" in err and "cancel" in err
    tenant.model.open_gate("held")
    assert (await tenant.finished(name))["status"]["phase"] == "Succeeded"


@ONCE
async def test_words_of_an_answer_are_shown_while_it_is_written_and_an_interrupted_question_goes_on(
    tenant: Tenant,
) -> None:
    words = " ".join(f"word{number}." for number in range(400))
    await ready(tenant, SCRIPT.replace("text: It is still full.", f"text: {words}\n      hang: {{after: 300}}"))
    await tenant.investigate()
    await tenant.finished()
    ada = await new_person(tenant, "ada", "tarsy-investigator")
    process = await ada.start("chat", "run", "Is it still full?")
    assert process.stdout is not None and process.stderr is not None
    async with asyncio.timeout(120):
        await process.stdout.readuntil(b"word0. word1.")
    process.send_signal(signal.SIGINT)
    err = (await process.stderr.read()).decode()
    assert await process.wait() == 130, err
    assert "look saw now" in err
    (question,) = await tenant.client.list("ChatMessage", tenant.namespace)
    name = question["metadata"]["name"]
    assert f"question {tenant.namespace}/{name} continues" in err

    async def is_running() -> bool:  # the words came from the record, which the status follows
        return (await tenant.get(name, "ChatMessage"))["status"].get("phase") == "Running"

    await until("the question goes on", is_running)
    await tenant.client.delete("ChatMessage", tenant.namespace, name)


@ONCE
async def test_a_tracer_reads_each_call_and_why_shows_the_quote_in_its_result(tenant: Tenant) -> None:
    await ready(tenant)
    await tenant.investigate()
    await tenant.finished()
    bob = await new_person(tenant, "bob", "tarsy-viewer", "tarsy-tracer")

    listed = await bob.tarsy("trace", "run")
    assert listed.status == 0, listed
    assert "tools.look" in listed.out and "stage-1/agent" in listed.out
    short = next(line.split()[-1] for line in listed.out.splitlines() if "--mcp" in line and "tools.look" in line)
    call = await bob.tarsy("trace", "run", "--mcp", short)
    assert call.status == 0, call
    assert "look saw df" in call.out and '"what": "df"' in call.out
    model = next(line.split()[-1] for line in listed.out.splitlines() if "--llm" in line and "model" in line)
    sent = await bob.tarsy("trace", "run", "--llm", model)
    assert "I look." in sent.out and "system" in sent.out
    detail = json.loads((await bob.tarsy("trace", "run", "--llm", model, "-o", "json")).out)
    assert detail["id"].startswith(model)

    why = await bob.tarsy("why", "run")
    assert "»look saw df«" in why.out and "tools.look" in why.out and "hidden" not in why.out
    (claim,) = json.loads((await bob.tarsy("why", "run", "-o", "json")).out)["claims"]
    (citation,) = claim["citations"]
    assert (claim["supported"], citation["quoted"], citation["tool"]) == (True, "look saw df", "tools.look")
    none = await bob.tarsy("trace", "run", "--mcp", "ffffffff")
    assert none.status == 1 and "begins with ffffffff" in none.err
    refused = await bob.tarsy("alerts", "submit", "-f", "-", stdin=alert())
    assert refused.status == 1 and "tarsy-investigator" in refused.err

    await tenant.investigate("again")
    await tenant.finished("again")
    compared = json.loads((await bob.tarsy("compare", "run", "again", "-o", "json")).out)
    assert [agent["first"] for agent in compared["agents"]] == [[]] * len(compared["agents"])
    assert sum(agent["same"] for agent in compared["agents"]) == compared["first"]["toolCalls"] > 0
    assert compared["first"]["summary"] == compared["second"]["summary"]
    side_by_side = await bob.tarsy("compare", "run", "again")
    assert side_by_side.status == 0, side_by_side
    assert "the same in both" in side_by_side.out

    refused = await bob.tarsy("replay", "run")
    assert refused.status == 1 and "tarsy-investigator" in refused.err
    carol = await new_person(tenant, "carol", "tarsy-investigator", "tarsy-tracer")
    made = json.loads((await carol.tarsy("replay", "run", "--chain", "chain", "-o", "json")).out)["name"]
    assert (await tenant.finished(made))["status"]["phase"] == "Succeeded"
    side_by_side = await carol.tarsy("compare", "run", made)
    assert f"{made} is a replay coverage 100% (exact 1); 0 recorded calls" in " ".join(side_by_side.out.split())
    for command in ("trace", "timeline"):
        shown = await carol.tarsy(command, made)
        assert "replay: exact, line 2 of the record" in " ".join(shown.out.split()), shown


@ONCE
async def test_a_claim_whose_citation_does_not_hold_is_marked(tenant: Tenant) -> None:
    finding = answer("High", ("tools.look", "look saw df"), ("tools.look", "all is well with it"))
    await ready(tenant, SCRIPT.replace(answer("High", ("tools.look", "look saw df")), finding))
    await tenant.investigate()
    await tenant.finished()
    bob = await new_person(tenant, "bob", "tarsy-viewer", "tarsy-tracer")
    why = await bob.tarsy("why", "run")
    assert "»look saw df«" in why.out
    assert "does not hold: the quote is not in the result of this call" in why.out
    assert "“all is well with it”" in why.out


@ONCE
async def test_a_question_that_is_refused_ends_with_its_reason(tenant: Tenant) -> None:
    await ready(tenant, HELD)
    await tenant.investigate()
    await tenant.asked(1, 60)
    ada = await new_person(tenant, "ada", "tarsy-investigator")
    refused = await ada.tarsy("chat", "run", "Already?")
    assert refused.status == 1, refused
    assert "InvestigationNotFinished" in refused.err
    tenant.model.open_gate("held")
    await tenant.finished()


@ONCE
async def test_who_has_no_role_learns_which_one_to_ask_for(tenant: Tenant) -> None:
    await ready(tenant)
    await tenant.investigate()
    await tenant.finished()
    eve = await new_person(tenant, "eve")
    for command, role in (("timeline", "tarsy-viewer"), ("why", "tarsy-viewer"), ("trace", "tarsy-tracer")):
        refused = await eve.tarsy(command, "run")
        assert refused.status == 1, refused
        assert f"--clusterrole={role} --user=eve -n {tenant.namespace}" in refused.err, refused
        assert await eve.tarsy(command, "none") == of_another(refused, "run", "none")


def of_another(refused: Answer, name: str, other: str) -> Answer:
    """The same refusal of another name."""
    return Answer(refused.status, refused.out, refused.err.replace(f'"{name}"', f'"{other}"'))


@ONCE
async def test_an_investigation_that_does_not_exist_is_one_sentence(tenant: Tenant) -> None:
    ada = await new_person(tenant, "ada", "tarsy-investigator")
    for command in (("timeline", "none"), ("timeline", "none", "-f"), ("why", "none"), ("cancel", "none")):
        found = await ada.tarsy(*command)
        assert found.status == 1, found
        assert "none" in found.err and len(found.err.strip().splitlines()) == 1, found


@ONCE
async def test_an_alert_without_a_chain_says_what_it_waits_for(tenant: Tenant) -> None:
    ada = await new_person(tenant, "ada", "tarsy-investigator")
    waits = await ada.tarsy("alerts", "submit", "-f", "-", stdin=alert())
    assert waits.status == 1, waits
    assert "waits: " in waits.err and "chain" in waits.err


@ONCE
async def test_kubectl_finds_the_plugin_and_completes_names_from_the_cluster(tenant: Tenant) -> None:
    kubectl = tenant.machine.kubectl
    if kubectl is None:
        pytest.skip("there is no kubectl on this machine")
    await ready(tenant, HELD)
    for name in ("disk-1", "disk-2", "other"):
        await tenant.investigate(name)
    ada = await new_person(tenant, "ada", "tarsy-investigator")
    programs = {"kubectl-tarsy": "main", "kubectl_complete-tarsy": "complete"}
    for program, function in programs.items():
        path = tenant.folder / program
        path.write_text(f"#!{sys.executable}\nfrom tarsy.cli.plugin import {function}\n{function}()\n")
        path.chmod(0o755)

    async def run(*command: str) -> Answer:
        path = f"{tenant.folder}{os.pathsep}{os.environ['PATH']}"
        pipe = asyncio.subprocess.PIPE
        env = {"PATH": path, "HOME": str(tenant.folder), "KUBECONFIG": str(ada.kubeconfig)}
        return await said(await asyncio.create_subprocess_exec(*command, env=env, stdin=pipe, stdout=pipe, stderr=pipe))

    async def completed() -> bool:
        found = await run(str(tenant.folder / "kubectl_complete-tarsy"), "why", "-n", tenant.namespace, "disk")
        return found.out.split() == ["disk-1", "disk-2", ":4"]

    await until("both names are completed within two seconds", completed, 120)
    cancelled = await run(str(kubectl), "tarsy", "cancel", "disk-1", "-n", tenant.namespace)
    assert cancelled.status == 0, cancelled
    assert (await tenant.get("disk-1"))["spec"]["desiredState"] == "Cancelled"
    tenant.model.open_gate("held")


@ONCE
async def test_a_token_does_the_same_at_the_direct_api(tenant: Tenant) -> None:
    await ready(tenant)
    user, token = await new_robot(tenant, "robot", "tarsy-investigator")
    url = f"http://127.0.0.1:{tenant.machine.http_port}"
    none, zygote = tenant.folder / "none.kubeconfig", tenant.machine.zygote
    robot = Person(user, tenant.namespace, none, zygote, {"TARSY_SERVER": url, "TARSY_TOKEN": token})

    submitted = await robot.tarsy("alerts", "submit", "--type", "DiskFull", "-f", "-", "--name", "text", stdin="full")
    assert submitted.status == 1 and "waits: " in submitted.err, submitted
    submitted = await robot.tarsy("alerts", "submit", "-f", "-", "--wait", "-o", "json", stdin=alert())
    assert submitted.status == 0, submitted
    name = json.loads(submitted.out)["investigation"]
    asked = await robot.tarsy("chat", name, "Is it still full?", "-o", "yaml")
    assert asked.status == 0, asked
    assert yaml.safe_load(asked.out)["answer"] == "It is still full."
    read = await robot.tarsy("timeline", name)
    assert "look saw df" in read.out and "Is it still full?" in read.out
    used = await robot.tarsy("usage", "--by", "model", "-o", "json")
    assert json.loads(used.out)["total"]["calls"] == 4
    over = await robot.tarsy("cancel", name)
    assert over.status == 1 and "has ended" in over.err
    refused = await robot.tarsy("trace", name)
    assert refused.status == 1 and "tarsy-tracer" in refused.err
    stranger = Person("nobody", tenant.namespace, none, zygote, {"TARSY_SERVER": url, "TARSY_TOKEN": "expired"})
    unknown = await stranger.tarsy("why", name)
    assert unknown.status == 1 and "are not accepted" in unknown.err


@ONCE
async def test_credentials_of_an_exec_plugin_are_used_and_an_expired_token_is_said_to_be_one(tenant: Tenant) -> None:
    await ready(tenant)
    await tenant.investigate()
    await tenant.finished()
    user, token = await new_robot(tenant, "robot", "tarsy-viewer")
    version = "client.authentication.k8s.io/v1"
    credential = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}})
    plugin = {"apiVersion": version, "command": "echo", "args": [credential], "interactiveMode": "Never"}
    robot = Person(user, tenant.namespace, kubeconfig_with(tenant, {"exec": plugin}), tenant.machine.zygote)
    read = await robot.tarsy("why", "run", placed=False)
    assert read.status == 0, read
    expired = Person(user, tenant.namespace, kubeconfig_with(tenant, {"token": "expired"}), tenant.machine.zygote)
    refused = await expired.tarsy("why", "run", placed=False)
    assert refused.status == 1, refused
    assert "the credentials of context here are not accepted" in refused.err
