"""Checks the pages of the site: all are in the navigation, no link is dead, and the references match the code."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hack.site import reasons
from hack.site.links import anchors, dead, slugify
from hack.site.pages import generated, written
from typer.main import get_command

from for_each import for_each
from tarsy.app.settings.processes import TOPICS
from tarsy.app.settings.topic import flag_of
from tarsy.cli.main import app
from tarsy.cli.plugin import new_app
from tarsy.http.intake import taking
from tarsy.http.table import all_routes
from tarsy.observe.metric_table import ALL
from tarsy.resources.crd import crd
from tarsy.resources.v1alpha1 import KINDS

CHECKOUT = Path(__file__).parents[3]
TESTS = CHECKOUT / "tests"


@cache
def all_pages() -> dict[str, str]:
    return {**written(), **generated()}


class _Loader(yaml.SafeLoader):
    """mkdocs.yml may name Python functions; none of them is looked up here."""


def _nav(part: Any) -> Iterator[str]:
    match part:
        case str():
            yield part
        case list():
            for one in part:
                yield from _nav(one)
        case dict():
            for one in part.values():
                yield from _nav(one)


def test_every_page_is_in_the_navigation_once() -> None:
    settings = yaml.load((CHECKOUT / "mkdocs.yml").read_text(encoding="utf-8"), _Loader)
    assert sorted(_nav(settings["nav"])) == sorted(all_pages())


def test_no_link_of_any_page_is_dead() -> None:
    assets = {str(path.relative_to(CHECKOUT / "docs")) for path in CHECKOUT.glob("docs/assets/**/*")}
    assert dead(all_pages(), assets) == []


def test_no_link_of_the_readmes_is_dead() -> None:
    readmes = ["README.md", "CONTRIBUTING.md", "manifests/README.md", "manifests/roles.md"]
    pages = {name: (CHECKOUT / name).read_text(encoding="utf-8") for name in readmes}
    folders = ("*.md", "docs/**/*.md", "docs/assets/*", "manifests/**/*.md")
    files = {str(path.relative_to(CHECKOUT)) for folder in folders for path in CHECKOUT.glob(folder)}
    assert dead(pages, files) == []


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ("other.md", None),
        ("other.md#a-heading", None),
        ("#here", None),
        ("https://example.com/x", None),
        ("missing.md", "there is no such page"),
        ("other.md#gone", "the page has no such heading"),
        ("#gone", "the page has no such heading"),
        ("../above.md", "there is no such page"),
        ("https:///nowhere", "no address that a browser opens"),
        ("javascript:alert", "no address that a browser opens"),
    ],
)
def test_a_link_is_dead_where_nothing_is(link: str, why: str | None) -> None:
    pages = {"page.md": f"# Here\n\n[x]({link})\n\n`[no](nowhere.md)`\n", "other.md": "# A heading\n"}
    assert dead(pages) == ([] if why is None else [f"page.md: {link}: {why}"])


def test_a_link_in_a_code_block_is_none() -> None:
    assert dead({"page.md": "```\n[x](nowhere.md)\n```\n"}) == []


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Backup and restore", "backup-and-restore"),
        ("`SecretForbidden`", "secretforbidden"),
        ("What is in it, and how it is pinned", "what-is-in-it-and-how-it-is-pinned"),
        ("MCPServer: `Available` and `Verified`", "mcpserver-available-and-verified"),
        ("[Linked](page.md) words", "linked-words"),
    ],
)
def test_a_heading_has_the_anchor_that_the_site_gives_it(heading: str, anchor: str) -> None:
    assert slugify(heading) == anchor


def test_headings_of_one_name_have_anchors_of_their_own_and_given_ones_count() -> None:
    assert anchors("# Same\n## Same\n## Same\n## GET /x {: #get-x }\n") == {"same", "same_1", "same_2", "get-x"}


@for_each("kind", KINDS)
def test_the_reference_has_every_field_of_a_kind(kind: str) -> None:
    page = all_pages()[f"reference/kinds/{kind.lower()}.md"]
    schema = crd(KINDS[kind])["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

    def fields(part: dict[str, Any], path: str) -> Iterator[str]:
        for name, field in part.get("properties", {}).items():
            yield f"{path}.{name}"
            yield from fields(field, f"{path}.{name}")
            yield from fields(field.get("items", {}), f"{path}.{name}[]")
            values = field.get("additionalProperties")
            yield from fields(values, f"{path}.{name}.*") if isinstance(values, dict) else ()

    wanted = [name for root in ("spec", "status") for name in fields(schema["properties"][root], root)]
    assert len(wanted) > 5
    assert [name for name in wanted if f"| `{name}` |" not in page] == []


def _row(page: str, field: str) -> str:
    return next(line for line in all_pages()[page].splitlines() if line.startswith(f"| `{field}` |"))


@pytest.mark.parametrize(
    ("kind", "field", "said"),
    [
        ("chain", "spec.stages[].replicas", "| integer | `1` | 1 to 10 |"),
        ("chain", "spec.stages", "list of object by name"),
        ("chain", "spec.stages", "required; 1 to 20 items"),
        ("alert", "spec.alertType", "cannot be changed"),
        ("chatmessage", "spec.desiredState", "one of `Running`, `Concluded`, `Cancelled`"),
        ("agent", "spec.mcpServers[].tools", "each: 1 to 128 characters"),
        ("llmprovider", "spec.apiKeySecretRef.name", "a Kubernetes name"),
    ],
)
def test_the_reference_has_type_default_limits_and_what_cannot_be_changed(kind: str, field: str, said: str) -> None:
    assert said in _row(f"reference/kinds/{kind}.md", field)


def test_the_reference_has_every_route() -> None:
    page = all_pages()["reference/http.md"]
    routes = {f"## {route.method} {route.path} " for route in all_routes()}
    assert [heading for heading in routes if heading not in page] == []


def test_the_reference_has_every_command_and_option() -> None:
    page = all_pages()["reference/tarsy.md"]

    def commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
        for name, one in group.commands.items():
            yield from commands(one, f"{path} {name}") if hasattr(one, "commands") else [(f"{path} {name}", one)]

    for path, one in commands(get_command(app), "tarsy"):
        part = page.partition(f"## {path}\n")[2].partition("\n## ")[0]
        assert getattr(one, "hidden", False) or part, path
        options = [p for p in one.params if p.param_type_name == "option" and not p.hidden and "--help" not in p.opts]
        assert [p.opts for p in options if part and f"`{p.opts[0]}`" not in part] == [], path


def test_the_reference_has_every_setting() -> None:
    text = all_pages()["reference/configuration.md"]
    for name, topic in TOPICS.items():
        part = text.partition(f"## spec.{name}\n")[2].partition("\n## ")[0]
        visible = [field.alias for field in topic.model_fields.values() if (flag := flag_of(field)) and not flag.hidden]
        assert visible and [alias for alias in visible if f"| `{alias}` |" not in part] == [], name


@pytest.mark.parametrize("application", [app, new_app()], ids=["tarsy", "kubectl-tarsy"])
def test_every_command_argument_and_option_says_what_it_is(application: Any) -> None:
    def silent(group: Any, path: str) -> Iterator[str]:
        for name, one in group.commands.items():
            if hasattr(one, "commands"):
                yield from silent(one, f"{path} {name}")
            elif not one.hidden:
                yield from [path + " " + name] if not one.help else []
                yield from (f"{path} {name}: {p.name}" for p in one.params if not p.help and not p.hidden)

    assert list(silent(get_command(application), "")) == []


def test_commands_in_the_pages_are_commands() -> None:
    application: Any = get_command(app)
    used = {
        (page, word)
        for page, text in written().items()
        for word in re.findall(r"(?:^|`|^kubectl )tarsy ([a-z][a-z-]+)", text, re.MULTILINE)
    }
    assert used
    assert sorted((page, word) for page, word in used if word not in application.commands) == []


def test_paths_in_the_pages_exist() -> None:
    made = ("build/", "manifests/...")
    named = {
        (page, path.rstrip("./"))
        for page, text in written().items()
        for path in re.findall(r"(?<![\w/.-])((?:manifests|hack|operator|controllers|crds)/[\w./-]*\w)", text)
    }
    assert named
    assert sorted((page, path) for page, path in named if not path.startswith(made) and not _there(path)) == []


def test_metrics_in_the_pages_exist() -> None:
    named = {
        (page, name) for page, text in written().items() for name in re.findall(r"`(tarsy_\w+)(?:\{[^`]*\})?`", text)
    }
    known = {metric.name for metric in ALL}
    assert len(named) > 10
    assert sorted((page, name) for page, name in named if name not in known) == []


def _there(path: str) -> bool:
    return (CHECKOUT / path).exists() or (CHECKOUT / "operator" / "tarsy" / path).exists()


def test_every_reason_of_the_code_has_an_entry_in_troubleshooting_and_no_entry_is_stale() -> None:
    given, told = reasons.reasons(), reasons.read(CHECKOUT / "docs" / "troubleshooting.md")
    assert {reason: where for reason, where in given.items() if reason not in told} == {}
    assert [reason for reason in told if reason not in given] == []
    assert len(told) == len(set(told))


def test_every_rejection_of_the_intake_is_in_troubleshooting() -> None:
    page = written()["troubleshooting.md"].partition("## Alerts that do not come")[2]
    tree = ast.parse(Path(taking.__file__).read_text(encoding="utf-8"))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "attr", "") == "_reject"]
    given = {n.args[1].value for n in calls if len(n.args) > 1 and isinstance(n.args[1], ast.Constant)}
    assert given
    assert [reason for reason in given if f"`{reason}`" not in page] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("raise NotYet('AlertMissing', 'a sentence')", {"AlertMissing"}),
        ("x = Condition(type=a, status='True', reason='InvestigationDeleted' if gone else 'Done', message=m)",
         {"InvestigationDeleted", "Done"}),
        ("return 'Restored', 'This is a copy.'", {"Restored"}),
        ("errors = [(error, 'MaskingInvalid') for error in found]", {"MaskingInvalid"}),
        ("def f():\n    yield 'Warning' if bad else 'Normal', 'StageFinished', f'{told}'", {"StageFinished"}),
        ("class ModelErrorCode(StrEnum):\n    STALL = 'StreamStalled'", {"StreamStalled"}),
        ("PACKAGE_MISSING = 'PackageMissing'", {"PackageMissing"}),
        ("reason, what = 'AnswerTimeout', 'answer'", {"AnswerTimeout"}),
        ("DONE = 'Done'; OTHER = 'Other'; tell(first, DONE, text)", {"Done"}),
        ("kind = 'Investigation'; f('NotThis')", set()),
        ("if error.reason != 'NotFound': raise", set()),
    ],
)  # fmt: skip
def test_reasons_are_found_where_code_gives_them(source: str, found: set[str]) -> None:
    assert set(reasons.of(source)) == found


@cache
def _tests_of(path: str) -> frozenset[str]:
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    return frozenset(n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def _threats() -> list[str]:
    part = written()["security.md"].partition("## Threats")[2].partition("\n## ")[0]
    return [line for line in part.splitlines() if line.startswith("| ")][1:]


@for_each("row", _threats(), ids=lambda row: row[2:60])
def test_every_threat_names_tests_that_exist(row: str) -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", row.rsplit(" | ", 1)[1])
    assert named
    assert [(path, test) for path, test in named if not (TESTS / path).exists() or test not in _tests_of(path)] == []
