"""Tests that no Secret and no unmasked value is in any table of the history, whatever happens to objects."""

from typing import Any

import pytest

from integration.history.conftest import Shop
from integration.history.test_recording import deployment

pytestmark = pytest.mark.timeout(180)

PLACES = ("config", "env", "annotation", "secret")
VALUES = [f"value-of-{place}-{number}" for place in PLACES for number in (1, 2)]


def objects(number: int) -> list[tuple[str, str, dict[str, Any]]]:
    """Objects with a value in each place that may hold one."""
    annotations = {"metadata": {"annotations": {"note": f"value-of-annotation-{number}"}}}
    config = {"data": {"key": f"value-of-config-{number}"}, **annotations}
    spec = deployment(TOKEN=f"value-of-env-{number}")
    spec["template"]["metadata"]["annotations"] = {"note": f"value-of-annotation-{number}"}
    spec["template"]["spec"]["containers"][0]["args"] = [f"--password=hunter{number}hunter{number}"]
    return [
        ("ConfigMap", "v1", config),
        ("Secret", "v1", {"stringData": {"key": f"value-of-secret-{number}"}}),
        ("Deployment", "apps/v1", {"spec": spec, **annotations}),
    ]


@pytest.mark.parametrize("choice", ["keys", "masked-values"])
async def test_no_value_and_no_secret_is_stored(shop: Shop, choice: str) -> None:
    await shop.kube.patch("Namespace", None, shop.name, {"metadata": {"labels": {"tarsy.dev/history": choice}}})
    async with shop.recorder():
        for kind, version, fields in objects(1):
            await shop.make(kind, "one", version, **fields)
        for kind, _, fields in objects(2):
            await shop.kube.patch(kind, shop.name, "one", fields)
        for kind in ("ConfigMap", "Secret", "Deployment"):
            await shop.kube.delete(kind, shop.name, "one")
        await shop.until(lambda versions: sum(one.action == "deleted" for one in versions) == 2)
        stored = (await shop.everything_stored()).decode()
    found = {value for value in VALUES if value in stored}
    masked = {value for value in VALUES if "secret" not in value}
    assert found == (masked if choice == "masked-values" else set())
    assert "hunter1hunter1" not in stored and "hunter2hunter2" not in stored
    assert "Secret" not in stored
