"""The changes that the remediation demo shows, and the Kubernetes API that it takes."""

from pathlib import Path

import pytest

from tarsy_dev.apiserver.errors import LocalKubernetesError
from tarsy_dev.demo_remediation import api_with_policies
from tarsy_dev.model import scenario_script
from tarsy_dev.objects import manifest
from tarsy_dev.remedies import REMEDIES, Remedy, chosen_remedies
from tarsy_dev.stack import running_stack

SAMPLES = [*manifest("samples/demo/crashloop.yaml"), *manifest("samples/demo/remedies.yaml")]


@pytest.mark.parametrize("remedy", REMEDIES.values(), ids=REMEDIES)
def test_a_change_is_not_there_before_its_script_proposes_it(remedy: Remedy) -> None:
    (before,) = [o for o in SAMPLES if (o["kind"], o["metadata"]["name"]) == (remedy.kind, remedy.name)]
    assert not remedy.made(before)
    entries = scenario_script(remedy.script).agents["remediation-agent"].entries
    proposed = [call for entry in entries for call in entry.calls]
    changes = [call for call in proposed if not call.name.endswith(".resources_get")]
    assert len(changes) == 1 and remedy.name in str(changes[0].arguments)


def test_all_are_shown_in_their_order() -> None:
    assert chosen_remedies("all") == tuple(REMEDIES.values())
    assert chosen_remedies("scale") == (REMEDIES["scale"],)


@pytest.mark.parametrize(
    ("real", "built", "keep", "used"),
    [
        ((1, 29), True, False, "newer"),
        ((1, 29), False, False, "embedded"),
        ((1, 29), True, True, "embedded"),
        ((1, 30), True, False, "auto"),
        (None, True, False, "auto"),
    ],
)
def test_auto_takes_an_api_with_policies(real: tuple[int, int] | None, built: bool, keep: bool, used: str) -> None:
    assert api_with_policies("auto", real, built=built, keep=keep) == used
    assert api_with_policies("real", real, built=built, keep=keep) == "real"


async def test_an_api_that_keeps_nothing_is_refused_where_objects_are_to_be_kept(tmp_path: Path) -> None:
    with pytest.raises(LocalKubernetesError, match="--api newer keeps no objects"):
        async with running_stack(tmp_path, api="newer"):
            pass
