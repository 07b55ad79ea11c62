"""Tests the credentials of a workload: where its token is, when it is renewed, and when none is given."""

import base64
import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

import pytest

from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.tool_workloads.acting import Acting, Lender, renew_at, renewal
from tarsy.controllers.tool_workloads.objects import job, owned_by, secret, service
from tarsy.controllers.tool_workloads.per_run import AGAIN_SECONDS, RunWorkloads
from tarsy.controllers.tool_workloads.pod_rules import PodSettings
from tarsy.controllers.tool_workloads.pods import PodRules
from tarsy.kube.client import ApiError, Connection, KubeClient
from tarsy.kube.tokens import TokenProblem
from tarsy.mcp.service_account_auth import ClusterAddress
from tarsy.plan.workload import workload_name
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1.mcp_server import MAX_NAME, MCPServer
from tarsy.resources.v1alpha1.workload import Run
from tarsy.store.runs.workloads import RunningServers
from unit.controllers.builders import raw

RUN = UUID("0123456789abcdef0123456789abcdef")
TOKEN = "header.payload.signature"
CLUSTER = ClusterAddress("https://10.96.0.1:443", b"a certificate")
ACTING = Acting("viewer", "payments", TOKEN, 1_000_600.0, CLUSTER)
HALF = 300.0
RULES = PodRules(gateway_image="tarsy-operator:test")
PODS = PodSettings("tarsy-system", gateway_image="tarsy-operator:test")
LIBRARY = "tarsy-library"


def made(
    transport: str = "stdio", name: str = "kube", namespace: str = "payments", **run: Any
) -> tuple[MCPServer, Run]:
    how = {"command": ["kubernetes-mcp-server"]} if transport == "stdio" else {"port": 8080}
    spec = {
        "transport": {"type": transport},
        "run": {"image": "tools:1", "scope": "PerRun", "kubeconfig": True, **how, **run},
    }
    found = parse_as(MCPServer, raw("MCPServer", name, spec, namespace=namespace))
    assert found.spec.run is not None
    return found, found.spec.run


def pod(transport: str = "stdio", account: str | None = "viewer", **run: Any) -> dict[str, Any]:
    server, what = made(transport, **run)
    found: dict[str, Any] = job(server, what, owned_by(server), RUN, 60, RULES, account)["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_workload_finds_its_kubeconfig_by_its_environment_and_is_nobody_else(transport: str) -> None:
    found = pod(transport)
    assert "serviceAccountName" not in found and found["automountServiceAccountToken"] is False
    container, *gateway = found["containers"]
    assert container["env"] == [{"name": "KUBECONFIG", "value": "/var/run/tarsy/workload/kubeconfig"}]
    (mount,) = (m for m in container["volumeMounts"] if m["mountPath"] == "/var/run/tarsy/workload")
    assert mount["readOnly"] is True
    assert ["env" in one for one in gateway] == ([False] if transport == "stdio" else [])


def test_a_kubeconfig_of_its_own_is_none_beside_that_of_the_agent() -> None:
    env = [{"name": "KUBECONFIG", "value": "/mine"}, {"name": "MODE", "value": "quiet"}]
    container, _ = pod(env=env)["containers"]
    assert [item["name"] for item in container["env"]] == ["MODE", "KUBECONFIG"]
    assert "/mine" not in str(container)


def test_without_an_account_a_workload_is_as_if_it_asked_for_none() -> None:
    container, gateway = pod(account=None)["containers"]
    assert "env" not in container and "env" not in gateway
    assert "kubeconfig" not in str(container["volumeMounts"])


def test_the_token_is_in_the_secret_as_a_file_and_nowhere_else() -> None:
    server, run = made()
    by = owned_by(server)
    held = secret(server, by, "of-the-callers", RUN, ACTING)
    assert held["stringData"]["kubernetes-token"] == TOKEN and held["stringData"]["token"] == "of-the-callers"
    texts = {key: text for key, text in held["stringData"].items() if key != "kubernetes-token"}
    rest = [job(server, run, by, RUN, 60, RULES, "viewer"), service(server, by, RUN, "viewer"), held["metadata"], texts]
    assert TOKEN not in str(rest) and TOKEN not in repr(ACTING)


def test_the_kubeconfig_leads_to_the_namespace_of_the_run_by_the_authority_that_the_operator_trusts() -> None:
    server, _ = made()
    read = json.loads(secret(server, owned_by(server), "t", RUN, ACTING)["stringData"]["kubeconfig"])
    ((place,), (user,), (context,)) = (read["clusters"], read["users"], read["contexts"])
    trusted = base64.b64encode(b"a certificate").decode()
    assert place["cluster"] == {"server": CLUSTER.server, "certificate-authority-data": trusted}
    assert user["user"] == {"tokenFile": "/var/run/tarsy/workload/kubernetes-token"}
    assert context["context"]["namespace"] == "payments" and read["current-context"] == context["name"]


def test_workloads_of_two_accounts_of_one_run_are_told_apart() -> None:
    server, run = made(name="x" * MAX_NAME)
    by = owned_by(server)
    one, other = (job(server, run, by, RUN, 60, RULES, account) for account in ("viewer", "a" * 253))
    assert one["metadata"]["name"] != other["metadata"]["name"]
    marks = [made["spec"]["template"]["metadata"]["labels"] for made in (one, other)]
    selector = service(server, by, RUN, "viewer")["spec"]["selector"]
    assert selector.items() <= marks[0].items() and not selector.items() <= marks[1].items()
    assert all(len(value) <= 63 for labels in marks for value in labels.values())
    assert one["metadata"]["annotations"] == {"tarsy.dev/service-account": "viewer"}
    assert one["spec"]["template"]["spec"]["volumes"][-1]["secret"]["secretName"] == one["metadata"]["name"]


def test_a_renewal_changes_the_token_and_when_it_ends() -> None:
    patch = renewal(ACTING)
    held = {key: base64.b64decode(text).decode() for key, text in patch["data"].items()}
    assert held == ACTING.files and set(held) == {"kubeconfig", "kubernetes-token"}
    assert patch["metadata"]["annotations"]["tarsy.dev/token-expires"] == "1000600"
    assert TOKEN not in str(patch["metadata"])


@pytest.mark.parametrize(
    ("annotations", "when"),
    [(ACTING.annotations, 1_000_300.0), ({}, 0.0), (None, 0.0), ({"tarsy.dev/token-expires": "soon"}, 0.0)],
)
def test_a_token_is_renewed_at_half_of_its_life_and_at_once_where_nothing_says_when_it_ends(
    annotations: dict[str, str] | None, when: float
) -> None:
    assert renew_at({"metadata": {"annotations": annotations}}) == when


class Api(KubeClient):
    """Keeps objects by kind and name; gives numbered tokens for ten minutes."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.now = 1_000_000.0
        self.asked: list[tuple[str, str]] = []
        self.errors: dict[str, ApiError] = {}
        self._uids: Iterator[int] = iter(range(1, 1000))

    async def connection(self) -> Connection:
        return Connection(CLUSTER.server, None, None, None, False)

    async def request_token(self, namespace: str, service_account: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append((namespace, service_account))
        self._fail("TokenRequest")
        return {"spec": {**spec, "audiences": ["api"]}, "status": {"token": f"token-{len(self.asked)}"}}

    async def find(self, kind: str, namespace: str | None, name: str) -> dict[str, Any] | None:
        return self.objects.get((kind, name))

    async def list(self, kind: str, namespace: str | None = None, **query: str) -> list[dict[str, Any]]:
        return [found for (of, _), found in self.objects.items() if of == kind]

    async def create(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        self._fail(obj["kind"])
        kept = copy.deepcopy(dict(obj))
        kept["metadata"]["uid"] = f"uid-{next(self._uids)}"
        self.objects[kept["kind"], kept["metadata"]["name"]] = kept
        return kept

    async def apply(self, obj: Mapping[str, Any], *, manager: str = "tarsy") -> dict[str, Any]:
        return await self.create(obj)

    async def patch(
        self, kind: str, namespace: str | None, name: str, body: Mapping[str, Any], *, subresource: str | None = None
    ) -> dict[str, Any]:
        self._fail("patch")
        if (kind, name) not in self.objects:
            raise ApiError(404, "NotFound", f"{kind} {name}")
        found = self.objects[kind, name]
        found["metadata"]["annotations"].update(body["metadata"]["annotations"])
        found["stringData"].update({key: base64.b64decode(text).decode() for key, text in body["data"].items()})
        return found

    async def delete(
        self,
        kind: str,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> None:
        self.objects.pop((kind, name), None)

    async def read(self, target: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        raise ApiError(404, "NotFound", target)

    def _fail(self, what: str) -> None:
        if what in self.errors:
            raise self.errors[what]


class Under:
    """A run under way with one server that acts as `viewer`, and controllers for it."""

    def __init__(self, namespace: str = "payments") -> None:
        server, _ = made(namespace=namespace)
        self.api = Api()
        self.cache = Cache()
        self.cache.put(
            raw("MCPServer", "kube", server.model_dump(by_alias=True, mode="json")["spec"], namespace=namespace)
        )
        self.running = [RunningServers(RUN, "payments", 600.0, frozenset({(namespace, "kube", "viewer")}))]
        self.name = workload_name("kube", RUN, "viewer")

    def controller(self) -> RunWorkloads:
        async def running() -> list[RunningServers]:
            return self.running

        def now() -> float:
            return self.api.now

        return RunWorkloads(self.api, self.cache, running, LIBRARY, PODS, clock=now, wall=now)

    @property
    def kinds(self) -> set[str]:
        return {kind for kind, _ in self.api.objects}

    @property
    def token(self) -> str:
        return str(self.api.objects["Secret", self.name]["stringData"]["kubernetes-token"])


async def test_a_token_is_replaced_at_half_of_its_life_and_not_before() -> None:
    there = Under()
    controller = there.controller()
    await controller.round()
    assert there.kinds == {"Job", "Service", "Secret"} and there.api.asked == [("payments", "viewer")]
    there.api.now += HALF - 1
    await controller.round()
    assert there.token == "token-1"
    there.api.now += 1
    await controller.round()
    assert there.token == "token-2" and len(there.api.asked) == 2
    there.api.now += HALF - 1
    await controller.round()
    assert there.token == "token-2"
    there.api.now += 2
    await controller.round()
    assert there.token == "token-3"


async def test_who_comes_after_a_crash_renews_when_it_is_time_and_not_sooner() -> None:
    there = Under()
    await there.controller().round()
    there.api.now += HALF - 1
    successor = there.controller()
    for _ in range(3):
        await successor.round()
    assert there.token == "token-1" and len(there.api.asked) == 1
    there.api.now += 1
    await successor.round()
    assert there.token == "token-2"


async def test_what_half_was_made_before_a_crash_is_completed_with_a_token() -> None:
    there = Under()
    await there.controller().round()
    del there.api.objects["Secret", there.name]
    await there.controller().round()
    assert there.token == "token-2" and there.kinds == {"Job", "Service", "Secret"}


async def test_a_secret_that_somebody_deleted_is_made_anew_when_its_token_would_be_renewed() -> None:
    there = Under()
    controller = there.controller()
    await controller.round()
    del there.api.objects["Secret", there.name]
    there.api.now += HALF
    await controller.round()
    there.api.now += AGAIN_SECONDS
    await controller.round()
    assert there.token == "token-3"


@pytest.mark.parametrize("reason", ["TokenForbidden", "RunSecretMissing"])
async def test_without_a_token_nothing_is_made_and_it_is_asked_for_again_after_a_while(reason: str) -> None:
    there = Under()
    missing = ApiError(404, "NotFound", f'secrets "tarsy-run-{RUN}" not found')
    there.api.errors["TokenRequest"] = ApiError(403, "Forbidden", "no") if reason == "TokenForbidden" else missing
    controller = there.controller()
    for _ in range(3):
        await controller.round()
    assert not there.kinds and len(there.api.asked) == 1
    there.api.errors.clear()
    there.api.now += AGAIN_SECONDS
    await controller.round()
    assert there.kinds == {"Job", "Service", "Secret"}


@pytest.mark.parametrize("what", ["Job", "patch"])
async def test_tokens_that_cannot_be_put_where_they_belong_are_not_asked_for_every_second(what: str) -> None:
    there = Under()
    controller = there.controller()
    if what == "patch":
        await controller.round()
        there.api.now += HALF
    before = len(there.api.asked)
    there.api.errors[what] = ApiError(403, "Forbidden", "no")
    for _ in range(3):
        await controller.round()
    assert len(there.api.asked) == before + 1
    there.api.errors.clear()
    there.api.now += AGAIN_SECONDS
    await controller.round()
    assert there.token == f"token-{before + 2}"


async def test_no_token_is_put_into_what_somebody_else_made_under_its_name() -> None:
    there = Under()
    theirs = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": there.name, "annotations": {}}}
    await there.api.create({**theirs, "stringData": {}})
    await there.controller().round()
    assert there.kinds == {"Secret"} and not there.api.asked


async def test_a_workload_of_the_library_acts_as_the_account_of_the_run() -> None:
    there = Under(LIBRARY)
    await there.controller().round()
    assert there.api.asked == [("payments", "viewer")]
    assert there.api.objects["Job", there.name]["metadata"]["namespace"] == LIBRARY


async def test_a_workload_of_another_namespace_is_not_made_and_no_token_is_asked_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    there = Under("elsewhere")
    await there.controller().round()
    assert not there.kinds and not there.api.asked
    assert "MCPServer elsewhere/kube would run in namespace elsewhere" in caplog.text
    with pytest.raises(TokenProblem, match="move the MCPServer to one of them"):
        await Lender(there.api, LIBRARY).lend("kube", "elsewhere", RUN, "payments", "viewer", 0.0)


async def test_everything_goes_when_the_run_has_ended_and_no_token_was_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    there = Under()
    controller = there.controller()
    await controller.round()
    there.api.now += HALF
    await controller.round()
    there.running = []
    await controller.round()
    assert not there.kinds
    assert "token-" not in caplog.text


async def test_what_was_left_by_a_dead_operator_is_found_by_label_and_annotation() -> None:
    there = Under()
    await there.controller().round()
    there.running = []
    await there.controller().round()
    assert not there.kinds
