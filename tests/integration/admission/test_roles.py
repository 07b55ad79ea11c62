"""Tests the rights of each role against an API server, and the published table of them.

`manifests/roles.md` is what this test makes of the answers: run with `--update-goldens` to write it anew. The roles
view, edit and admin are filled by the controller manager, which an API server alone lacks, of whatever version: for
them the answers are those of the embedded API.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

import goldens
import rights
from apis import LocalApi
from integration.admission.conftest import LIBRARY, SHOP, binding
from tarsy.kube.access import ResourceAttributes, Subject, may
from tarsy.kube.client import KubeClient
from tarsy.resources.v1alpha1 import KINDS
from tarsy_dev.apiserver.server import ApiServer

TABLE = Path(__file__).parents[3] / "manifests" / "roles.md"
OURS = (
    "tarsy-viewer",
    "tarsy-investigator",
    "tarsy-author",
    "tarsy-tracer",
    "tarsy-promoter",
    "tarsy-approver",
    "tarsy-tool-acceptor",
    "tarsy-reviewer",
    "tarsy-quota-administrator",
)
CLUSTERS = ("view", "edit", "admin")
GROUPS = dict(
    zip(
        OURS,
        ("viewers", "on-call", "authors", "tracers", "promoters", "approvers", "acceptors", "reviewers", "payers"),
        strict=True,
    )
)
RUNS = ("alerts", "chatmessages", "investigations")
EVAL_RUNS = ("evalruns",)
APPROVALS = ("toolapprovals",)
REVIEWS = ("reviews",)
QUOTAS = ("investigationquotas",)
OTHERS = RUNS + EVAL_RUNS + APPROVALS + REVIEWS + QUOTAS
CONFIGURATION = tuple(sorted(kind.PLURAL for kind in KINDS.values() if kind.PLURAL not in OTHERS))
READ, WRITE = ("get", "list", "watch"), ("create", "update", "patch", "delete")
Question = tuple[str, str, str, str]


def questions() -> list[tuple[str, list[Question]]]:
    """What a person may want to do, and what the API server is asked about it: verb, group, resource, subresource."""

    def of(verbs: tuple[str, ...], plurals: tuple[str, ...]) -> list[Question]:
        return [(verb, "tarsy.dev", plural, "") for plural in plurals for verb in verbs]

    def record(*subresources: str) -> list[Question]:
        return [("get", "record.tarsy.dev", "investigations", name) for name in subresources]

    return [
        ("see alerts, investigations and questions, with findings and answers", of(READ, RUNS)),
        ("see the configuration", of(READ, CONFIGURATION)),
        ("read timelines, and follow them", record("timeline", "events")),
        (
            "read what changed, and which faults objects show, of the kinds that they may list",
            [("list", "record.tarsy.dev", name, "") for name in ("changes", "triage")],
        ),
        ("read traces: what models saw, what tools answered", record("trace")),
        ("create alerts, investigations and questions", of(("create",), RUNS)),
        ("conclude and cancel them (`desiredState`)", of(("patch",), RUNS)),
        ("delete them; their record stays", of(("delete",), RUNS)),
        ("see EvalRuns", of(READ, EVAL_RUNS)),
        ("measure chains: create, cancel and delete EvalRuns", of(("create", "patch", "delete"), EVAL_RUNS)),
        ("use chains, and bring MCP servers in an alert", of(("use",), ("chains", "mcpservers"))),
        ("write the configuration", of(WRITE, CONFIGURATION)),
        (
            "let a revision of a chain serve without a passed evaluation",
            [("promote", "tarsy.dev", "chains", "")],
        ),
        (
            "see calls that wait for approval, with the results that they cite",
            [*of(READ, APPROVALS), ("get", "record.tarsy.dev", "toolapprovals", "evidence")],
        ),
        (
            "decide about calls (what the policy `tarsy-approve` lets them)",
            [*of(("patch", "update"), APPROVALS), ("approve", "tarsy.dev", "mcpservers", "")],
        ),
        (
            "accept tools of MCPServers (what the policy `tarsy-accept` lets them)",
            of(("patch", "approve"), ("mcpservers",)),
        ),
        (
            "see scores of investigations, and what they tell of a suite",
            [
                ("get", "record.tarsy.dev", "investigations", "score"),
                ("get", "record.tarsy.dev", "evalsuites", "scores"),
            ],
        ),
        (
            "see reviews, and which findings need one",
            [
                *of(READ, REVIEWS),
                ("get", "record.tarsy.dev", "investigations", "review"),
                ("list", "record.tarsy.dev", "reviews", ""),
                ("list", "record.tarsy.dev", "calibration", ""),
            ],
        ),
        ("see which runs wait, and why", [("list", "record.tarsy.dev", "queue", "")]),
        ("review: claim findings and write verdicts (their own Reviews only)", of(WRITE, REVIEWS)),
        ("read the definitions of tools", [("get", "record.tarsy.dev", "mcpservers", "tools")]),
        ("read the texts of skills", [("get", "record.tarsy.dev", "skills", "text")]),
        ("create them in another's name", of(("attribute",), OTHERS)),
        ("write what TARSy writes (status)", [("patch", "tarsy.dev", k.PLURAL, "status") for k in KINDS.values()]),
        ("read Secrets", [("get", "", "secrets", "")]),
    ]


async def answers(
    admin: KubeClient, roles: Mapping[str, str], namespace: str = SHOP, name: str = ""
) -> dict[str, dict[str, str]]:
    """For each question: what a group with each role may: all of it, nothing, or which; of all objects, or of one."""
    found: dict[str, dict[str, str]] = {}
    for text, asked in questions():
        for role, group in roles.items():
            subject = Subject("somebody", groups=(group, "system:authenticated"))
            yes = [
                f"{verb} {plural}"
                for verb, api, plural, sub in asked
                if await may(admin, subject, ResourceAttributes(verb, api, plural, sub, namespace, name))
            ]
            found.setdefault(text, {})[role] = (
                "yes" if len(yes) == len(asked) else "" if not yes else ", ".join(sorted(yes))
            )
    return found


def table(found: Mapping[str, Mapping[str, str]]) -> str:
    """Markdown of the answers."""
    roles = [*OURS, *CLUSTERS]
    lines = [
        "# Who can do what",
        "",
        "What each role may do in the namespace it is bound in, as an API server answers (SubjectAccessReview). Made",
        "by `tests/integration/admission/test_roles.py`; do not edit. The first eight are of `base/people.yaml`; the",
        "last three are every cluster's own, into which those are aggregated.",
        "",
        "| | " + " | ".join(f"`{role}`" for role in roles) + " |",
        "|---|" + "---|" * len(roles),
        *(f"| {text} | " + " | ".join(row[role] for role in roles) + " |" for text, row in found.items()),
        "",
        "Everybody who is signed in may `use` the chains and the MCP server of `tarsy-library`, by",
        "`library/users.yaml`: a run of a chain asks for `use` where the chain is. ConfigMaps that an alert names are",
        "read for those who may `get` them. Without any role nobody may do anything of this.",
        "",
    ]
    return "\n".join(lines)


@pytest.fixture
async def roles(server: LocalApi, admin: KubeClient) -> dict[str, str]:
    """Roles, and the groups that have them in the shop."""
    if not (await admin.get("ClusterRole", None, "view")).get("rules"):
        assert isinstance(server, ApiServer), "the embedded API fills aggregated roles by itself"
        return dict(GROUPS)
    for role in CLUSTERS:
        await rights.put_rights(admin, [binding(role, f"of-{role}")])
    return GROUPS | {role: f"of-{role}" for role in CLUSTERS}


@pytest.mark.heavy("every right of every role; http/test_authorization has the matrix of people")
async def test_each_role_can_do_exactly_what_the_table_says(
    admin: KubeClient, roles: dict[str, str], request: pytest.FixtureRequest
) -> None:
    found = await answers(admin, roles)
    if len(roles) > len(OURS):
        goldens.check(TABLE, table(found), request)
        return
    said = dict(_row(line) for line in TABLE.read_text("utf-8").splitlines()[8:] if line.startswith("|"))
    assert said == {text: list(row.values()) for text, row in found.items()}


def _row(line: str) -> tuple[str, list[str]]:
    text, *cells = (cell.strip() for cell in line.strip("|").split("|"))
    return text, cells[: len(OURS)]


async def test_a_role_holds_in_its_namespace_only(admin: KubeClient, roles: dict[str, str]) -> None:
    found = await answers(admin, roles, "elsewhere")
    assert {text: set(row.values()) for text, row in found.items()} == {text: {""} for text in found}


async def test_who_is_signed_in_may_use_what_is_in_the_library_and_nothing_else(admin: KubeClient) -> None:
    nobody = {"nobody": "no-role-at-all"}
    found = await answers(admin, nobody, LIBRARY, "kubernetes")
    assert [text for text, row in found.items() if row["nobody"]] == ["use chains, and bring MCP servers in an alert"]
    for name in ("", "another"):
        found = await answers(admin, nobody, LIBRARY, name)
        assert [text for text, row in found.items() if row["nobody"]] == []


async def test_a_trace_is_no_viewers(admin: KubeClient, roles: dict[str, str]) -> None:
    found = (await answers(admin, roles))["read traces: what models saw, what tools answered"]
    assert {role for role, answer in found.items() if answer} == {"tarsy-tracer", "admin"} & roles.keys()
