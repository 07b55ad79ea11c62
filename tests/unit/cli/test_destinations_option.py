"""What `--url-host` and `--cluster-domain` make of where URLs may lead."""

from pathlib import Path

import pytest
import typer

from tarsy.cli.commands import options


@pytest.fixture
def resolv_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(options, "_RESOLV_CONF", tmp_path / "resolv.conf")
    return tmp_path / "resolv.conf"


@pytest.mark.parametrize(("given", "domain"), [(None, "corp.example"), ("own.example", "own.example")])
def test_the_clusters_domain_is_given_or_read_from_the_pods_resolver(
    resolv_conf: Path, given: str | None, domain: str
) -> None:
    resolv_conf.write_text("search tarsy-system.svc.corp.example svc.corp.example corp.example\n")
    assert options.destinations(None, given).cluster_domain == domain


def test_a_process_without_a_resolver_file_takes_the_usual_domain(resolv_conf: Path) -> None:
    assert options.destinations(["ollama"], None).cluster_domain == "cluster.local"


@pytest.mark.parametrize(("hosts", "domain"), [(["a b"], None), (None, "a b"), (None, "")])
def test_wrong_words_are_wrong_use(resolv_conf: Path, hosts: list[str] | None, domain: str | None) -> None:
    with pytest.raises(typer.BadParameter, match="is no "):
        options.destinations(hosts, domain)
