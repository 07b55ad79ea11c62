"""What `--url-host` and `--cluster-domain` make of where URLs may lead."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from tarsy.app.settings import work_topics
from tarsy.app.settings.work_topics import OutboundSettings


@pytest.fixture
def resolv_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(work_topics, "_RESOLV_CONF", tmp_path / "resolv.conf")
    return tmp_path / "resolv.conf"


@pytest.mark.parametrize(("given", "domain"), [(None, "corp.example"), ("own.example", "own.example")])
def test_the_clusters_domain_is_given_or_read_from_the_pods_resolver(
    resolv_conf: Path, given: str | None, domain: str
) -> None:
    resolv_conf.write_text("search tarsy-system.svc.corp.example svc.corp.example corp.example\n")
    assert OutboundSettings(cluster_domain=given).destinations().cluster_domain == domain


def test_a_process_without_a_resolver_file_takes_the_usual_domain(resolv_conf: Path) -> None:
    assert OutboundSettings(hosts=("ollama",)).destinations().cluster_domain == "cluster.local"


@pytest.mark.parametrize(("hosts", "domain"), [(("a b",), None), ((), "a b"), ((), "")])
def test_wrong_words_are_wrong_use(resolv_conf: Path, hosts: tuple[str, ...], domain: str | None) -> None:
    with pytest.raises(ValidationError, match=r"is (no|not a) "):
        OutboundSettings(hosts=hosts, cluster_domain=domain)
