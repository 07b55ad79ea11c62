"""The samples of the kinds: valid, one for each kind that people write, and complete together."""

from typing import Any, Final

from for_each import for_each
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.check import check_references
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1 import KINDS
from unit.manifests.shipped import named, objects

SAMPLES: Final = objects("samples/kinds")
WRITTEN_BY_THE_OPERATOR: Final = {"ToolApproval"}


def _read(obj: dict[str, Any]) -> AnyResource:
    return KINDS[obj["kind"]].model_validate(obj)


@for_each("obj", SAMPLES, ids=named)
def test_a_sample_is_valid_and_has_no_unknown_field(obj: dict[str, Any]) -> None:
    spec = _read(obj).spec
    assert set(obj["spec"]) <= {field.alias or name for name, field in type(spec).model_fields.items()}


def test_each_kind_that_people_write_has_one_sample() -> None:
    assert sorted(obj["kind"] for obj in SAMPLES) == sorted(set(KINDS) - WRITTEN_BY_THE_OPERATOR)


def test_the_samples_name_nothing_that_is_not_among_them() -> None:
    found = [_read(obj) for obj in SAMPLES]
    assert [error for obj in found for error in check_references(obj, ResourceCatalog(found))] == []
