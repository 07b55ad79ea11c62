"""Tests that the drift report finds no difference between two equal APIs."""

import shutil
from pathlib import Path

import pytest
import yaml
from tests.drift.cases import load
from tests.drift.compare import Verdict, outcomes
from tests.drift.session import Session

from embedded_kubeapi.server import EmbeddedApi

CRDS = Path(__file__).parents[3] / "crds"


def answers(kubectl: Path) -> dict[str, list[str]]:
    crd = yaml.safe_load((CRDS / "investigations.yaml").read_text())
    with EmbeddedApi() as api:
        session = Session(api, kubectl)
        try:
            session.prepare(["kopf"], [crd])
            return {case.id: session.ask(case) for case in load() if case.group == "kopf" and "watch" not in case.id}
        finally:
            session.close()


@pytest.mark.heavy("two servers; the unit tests have the comparison")
def test_two_servers_of_one_kind_do_not_differ() -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl on PATH")
    found = outcomes(answers(Path(kubectl)), answers(Path(kubectl)), {})
    assert len(found) > 20
    assert [(each.id, each.real, each.embedded) for each in found if each.verdict is not Verdict.SAME] == []
    told = {each.id: each.real for each in found}
    assert told["kopf/create-again"][:2] == ["status 409", "reason AlreadyExists"]
    assert told["kopf/event-described"][0] == "exit 0"
