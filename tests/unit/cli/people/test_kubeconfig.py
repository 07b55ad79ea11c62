"""Which cluster, as whom, in which namespace: as kubectl chooses."""

import os
from pathlib import Path

import pytest
import yaml

from tarsy.client.errors import ApiUseError
from tarsy.client.kubeconfig import ChosenContext, choose_context


def kubeconfig(path: Path, current: str = "", **contexts: str | None) -> str:
    """A kubeconfig with contexts and their namespaces."""
    items = [
        {"name": name, "context": {"cluster": "c", "user": "u", **({"namespace": at} if at else {})}}
        for name, at in contexts.items()
    ]
    path.write_text(yaml.safe_dump({"contexts": items, **({"current-context": current} if current else {})}))
    return str(path)


def test_namespace_is_that_of_the_context_unless_it_is_given(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "config", "prod", prod="shop", bare=None)
    assert choose_context(file, None, None, {}) == ChosenContext(file, "prod", "shop")
    assert choose_context(file, None, "other", {}) == ChosenContext(file, "prod", "other")
    assert choose_context(file, "bare", None, {}) == ChosenContext(file, "bare", "default")


def test_of_several_files_the_first_current_context_and_the_first_of_a_name_decide(tmp_path: Path) -> None:
    files = [
        kubeconfig(tmp_path / "a", "", one="first"),
        kubeconfig(tmp_path / "b", "two", one="second", two="of-b"),
        kubeconfig(tmp_path / "c", "one"),
        str(tmp_path / "missing"),
    ]
    environ = {"KUBECONFIG": os.pathsep.join(files)}
    assert choose_context(None, None, None, environ) == ChosenContext(environ["KUBECONFIG"], "two", "of-b")
    assert choose_context(None, "one", None, environ).namespace == "first"


def test_without_any_the_one_in_the_home_directory_is_used_and_then_the_pod(tmp_path: Path) -> None:
    pod = tmp_path / "namespace"
    pod.write_text("team-a\n")
    environ = {"HOME": str(tmp_path)}
    assert choose_context(None, None, None, environ, pod) == ChosenContext(None, None, "team-a")
    (tmp_path / ".kube").mkdir()
    usual = kubeconfig(tmp_path / ".kube/config", "home", home=None)
    assert choose_context(None, None, None, environ, pod) == ChosenContext(usual, "home", "default")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no kubeconfig at"),
        ("users: [{name: x, token: hunter2", "is not YAML"),
        ("- hunter2", "is not a mapping"),
        ("contexts: []", "no current context is set"),
        ("current-context: gone", "there is no context 'gone'"),
    ],
)
def test_what_is_wrong_is_a_sentence_without_what_the_file_holds(
    tmp_path: Path, content: str | None, words: str
) -> None:
    file = tmp_path / "config"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ApiUseError, match=words) as refused:
        choose_context(str(file), None, None, {}, tmp_path / "no-pod")
    assert "hunter2" not in str(refused.value)


def test_an_unknown_context_names_those_there_are(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "config", "a", b=None, a=None)
    with pytest.raises(ApiUseError, match="choose one with --context: a, b"):
        choose_context(file, "c", None, {})
