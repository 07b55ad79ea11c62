"""Checks the commands of other programs in the pages: their options, and what they name exists.

Decision: the options of kubectl, helm and docker stand in `programs.yaml`, as their --help prints them, so this
needs none of them, and a command that a page prints for the first time is looked up once.
"""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml
from typer.main import get_command

from tarsy.cli.main import app
from tarsy.cli.plugin import new_app
from tarsy.resources.meta import CATEGORY
from tarsy.resources.v1alpha1 import KINDS, ConditionType
from unit.docs.printed import CHECKOUT, Printed, blocks, commands, pages, parts

WITH_VALUE = {
    *("-n", "-o", "-l", "-f", "-k", "-p", "-c", "-t", "--namespace", "--context", "--as", "--as-group", "--type"),
    *("--replicas", "--patch-file", "--set", "--version", "--build-arg"),
}
"""Options whose value is the next word, where they have no `=`."""
OF_KUBERNETES = {
    *("apiservice", "cm", "configmap", "crd", "deploy", "deployment", "deployments", "lease", "namespace", "ns", "pod"),
    *("pods", "secret", "secrets", "service", "serviceaccount", "svc", "validatingadmissionpolicies"),
}
"""Kinds of Kubernetes, as the pages name them."""


@cache
def options() -> dict[str, dict[str, list[str]]]:
    """Returns the options of programs by program and command."""
    path = CHECKOUT / "tests" / "unit" / "docs" / "programs.yaml"
    return {
        program: {str(name): found or [] for name, found in of.items()}
        for program, of in yaml.safe_load(path.read_text("utf-8")).items()
    }


def plain(words: tuple[str, ...]) -> Iterator[str]:
    """Yields the words that are neither options nor values of options."""
    rest = iter(words)
    for word in rest:
        if word == "--":
            return
        if word.startswith("-") and word != "-":
            if word in WITH_VALUE:
                next(rest, None)
        else:
            yield word


def verb(program: str, words: tuple[str, ...]) -> str | None:
    """Returns the command of a program by its name in `programs.yaml`; None if it is not there."""
    first = list(plain(words))[:3]
    names = (" ".join(first[:number]) for number in (3, 2, 1) if len(first) >= number)
    return next((name for name in names if name in options()[program] and name != "all"), None)


def wrong_options(one: Printed) -> list[str]:
    """Returns what is wrong with a command's options."""
    if not list(plain(one.words)):
        return []  # a program alone, or its options alone
    name = verb(one.program, one.words)
    if name is None:
        return [f"{one}: programs.yaml does not know this command of {one.program}"]
    known = {*options()[one.program]["all"], *options()[one.program][name], "--help"}
    shown = [word.lstrip("[").partition("=")[0] for word in one.words]
    return [
        f"{one}: {one.program} {name} has no option {word}"
        for word in shown
        if re.fullmatch(r"-\w|--[\w-]+", word) and word not in known
    ]


def of_kubectl() -> list[Printed]:
    """Returns the commands of kubectl itself, without its plugins."""
    return [one for one in commands("kubectl") if next(plain(one.words), "") not in ("tarsy", "krew", "")]


def test_programs_have_the_options_that_the_pages_show() -> None:
    found = [*of_kubectl(), *commands("helm", "docker")]
    assert len(found) > 100
    assert [problem for one in found for problem in wrong_options(one)] == []


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("kubectl get inv -A -o wide", ""),
        ("kubectl -n x rollout status deploy/y --timeout=3s", ""),
        ("kubectl get inv --all-namespace", "kubectl get has no option --all-namespace"),
        ("kubectl rollout status deploy/x --replicas=3", "kubectl rollout status has no option --replicas"),
        ("kubectl fetch pods", "does not know this command of kubectl"),
        ("helm upgrade x y --atomicly", "helm upgrade has no option --atomicly"),
        ("docker push x --force", "docker push has no option --force"),
        ("kubectl", ""),
    ],
)
def test_an_option_that_a_program_does_not_have_is_found(line: str, wrong: str) -> None:
    (words,) = parts(line)
    found = wrong_options(Printed("page.md", words[0], tuple(words[1:])))
    assert wrong in "".join(found) and bool(wrong) == bool(found)


def _refusal(command: Any, words: list[str]) -> str | None:
    """Returns why one of our programs would not know a command or an option; it may lack arguments between words."""
    while hasattr(command, "commands") and words and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    if hasattr(command, "commands") and words and not words[0].startswith("-"):
        return f"there is no command {words[0]}"
    try:
        command.make_parser(command.context_class(command)).parse_args(list(words))
    except Exception as error:  # typer has a click of its own
        said = str(error.format_message()) if hasattr(error, "format_message") else repr(error)
        return None if "requires an argument" in said else said
    return None


def _ours() -> Iterator[tuple[Printed, Any, list[str]]]:
    programs = {"tarsy": get_command(app), "kubectl": get_command(new_app())}
    for one in commands("tarsy", "kubectl"):
        words = [word.strip("[]") for word in one.words if word != "..."]
        said = one.page == "slack.md" and one.program == "tarsy"  # messages to the bot of this name
        if not said and (one.program == "tarsy" or words[:1] == ["tarsy"]):
            yield one, programs[one.program], words[one.program == "kubectl" :]


def test_our_commands_between_words_and_outside_the_site_have_the_options_that_they_show() -> None:
    found = list(_ours())
    assert len(found) > 150
    assert [f"{one}: {why}" for one, program, words in found if (why := _refusal(program, words))] == []


@pytest.mark.parametrize(
    ("words", "why"), [("why NAME", ""), ("why --colour", "No such option"), ("because NAME", "no command because")]
)
def test_an_option_that_our_plugin_does_not_have_is_found(words: str, why: str) -> None:
    assert why in (_refusal(get_command(new_app()), words.split()) or "")


def _resources(one: Printed) -> set[str]:
    """Returns the kinds that a command of kubectl names."""
    _, *rest = list(plain(one.words))
    if "--raw" in one.words or not rest:
        return set()
    words = rest if "/" in rest[0] else rest[:1]
    named = {part.partition("/")[0] for word in words for part in word.split(",")}
    return {re.sub(r"\.(spec|status)\b.*|\.tarsy\.dev$", "", name) for name in named}


def test_kubectl_is_asked_for_kinds_that_exist() -> None:
    ours = {CATEGORY, "chains"} | {
        name for kind in KINDS.values() for name in (kind.PLURAL, kind.KIND.lower(), *kind.SHORT_NAMES)
    }
    asked = [
        one for one in of_kubectl() if verb("kubectl", one.words) in ("get", "describe", "delete", "wait", "explain")
    ]
    assert len(asked) > 50
    placeholders = re.compile(r"\$|[A-Z]")
    assert [
        f"{one}: there is no kind {name}"
        for one in asked
        for name in sorted(_resources(one) - ours - OF_KUBERNETES)
        if not placeholders.match(name)
    ] == []


def test_kubectl_waits_for_conditions_that_exist() -> None:
    waited = [(one, word.rpartition("=")[2]) for one in of_kubectl() for word in one.words if "=condition=" in word]
    assert waited
    known = {*ConditionType, "Established", "Available"}
    assert [f"{one}: no object has the condition {name}" for one, name in waited if name not in known] == []


def test_targets_and_variables_of_make_exist() -> None:
    makefile = (CHECKOUT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    wrong = []
    for one in commands("make"):
        names = [word for word in one.words if re.fullmatch(r"[a-z][a-z-]*", word)]
        variables = [word.partition("=")[0] for word in one.words if re.match(r"[A-Z_]+=", word)]
        wrong += [f"{one}: there is no target {name}" for name in names[:1] if name not in targets]
        wrong += [f"{one}: nothing reads {name}" for name in variables if f"$({name})" not in makefile]
    assert wrong == []


def _values(chart: str) -> dict[str, Any]:
    path = CHECKOUT / "hack" / "chart" / "sources" / chart / "values.yaml"
    found: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return found


def _has(values: Any, path: str) -> bool:
    for name in path.split("."):
        if not isinstance(values, dict) or name not in values:
            return False
        values = values[name]
    return True


def test_values_of_the_charts_that_the_pages_name_exist() -> None:
    wrong = []
    for one in commands("helm"):
        chart = next((name for name in ("tarsy-library", "tarsy") if name in one.words), "tarsy")
        given = [after for before, after in zip(one.words, one.words[1:], strict=False) if before == "--set"]
        wrong += [f"{one}: no value {name}" for name in given if not _has(_values(chart), name.partition("=")[0])]
    table = pages()["helm.md"].partition("| value | effect |")[2].partition("\n\n")[0]
    cells = [line.split(" | ")[0] for line in table.splitlines()[2:]]
    named = {name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)}
    named |= set(re.findall(r"`(crds\.\w+|namespace\.\w+)", pages()["helm.md"]))
    assert len(named) > 10
    either = [_values("tarsy"), _values("tarsy-library")]
    wrong += [f"helm.md: no value {name}" for name in named if not any(_has(values, name) for values in either)]
    assert wrong == []


def test_components_that_the_pages_name_exist() -> None:
    wrong = []
    for page, text in pages().items():
        for name in re.findall(r"\bcomponents?/([a-z][a-z-]+)", text) + re.findall(r"\bcomponent `([a-z-]+)`", text):
            if not (CHECKOUT / "manifests" / "components" / name / "kustomization.yaml").is_file():
                wrong.append(f"{page}: there is no component {name}")
    assert wrong == []


def test_blocks_of_commands_are_the_shell_s() -> None:
    for page, text in blocks("", "sh"):
        starts = re.match(r"(kubectl|helm|make|docker|python3?|tarsy|curl|git) ", text)
        if starts:
            done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, timeout=10)
            assert done.returncode == 0, f"{page}: {done.stderr}"
