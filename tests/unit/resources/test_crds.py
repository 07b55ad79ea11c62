"""The CRDs: structural, bounded, small, and the same as the files in crds/."""

import json
from functools import cache
from pathlib import Path
from typing import Annotated

import pytest
import yaml
from pydantic import Field

from for_each import for_each
from tarsy.resources import crd as module
from tarsy.resources.crd import check_crds, files, write_crds
from tarsy.resources.schema import Model, Unique
from tarsy.resources.structural import NotStructural, structural
from tarsy.resources.v1alpha1 import KINDS
from unit.resources.crd_walk import violations, walk

CRDS = Path(__file__).parents[3] / "crds"
KUBECTL_APPLY_LIMIT = 262_144
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

crd = cache(module.crd)
every_kind = for_each("kind", KINDS.values(), ids=lambda kind: kind.KIND)


@every_kind
def test_crd_is_structural_and_bounded_everywhere(kind):
    assert violations(crd(kind)) == []


@every_kind
def test_crd_fits_the_annotation_of_client_side_apply(kind):
    assert len(json.dumps(crd(kind))) < 200_000 < KUBECTL_APPLY_LIMIT


@every_kind
def test_printer_columns_and_selectable_fields_point_at_fields(kind):
    document = crd(kind)
    (version,) = document["spec"]["versions"]
    paths = {node.path: node.schema for node in walk(document)}
    for column in version["additionalPrinterColumns"]:
        for path in _fields_of(column["jsonPath"]):
            assert path in paths or path == ".metadata.creationTimestamp"
    for field in version.get("selectableFields", []):
        assert paths[field["jsonPath"]]["type"] == "string"


def _fields_of(path):
    """Returns the paths of the fields that a JSONPath shows: one, or those of a union, the first of which is shown."""
    if "[?(" in path:
        return [path[: path.index("[?(")] + "[]" + path[path.index(")]") + 2 :]]
    head, bracket, rest = path.partition("['")
    return [f"{head}.{name}" for name in rest.removesuffix("']").split("','")] if bracket else [path]


@every_kind
def test_age_comes_before_what_only_wide_output_shows(kind):
    columns = crd(kind)["spec"]["versions"][0]["additionalPrinterColumns"]
    narrow = [column["name"] for column in columns if "priority" not in column]
    assert [column["name"] for column in columns][: len(narrow)] == narrow
    assert narrow[-1] == "Age"


@every_kind
def test_kinds_are_namespaced_in_the_category_with_a_status_subresource(kind):
    document = crd(kind)
    assert document["spec"]["scope"] == "Namespaced"
    assert document["spec"]["names"]["categories"] == ["tarsy"]
    assert document["spec"]["versions"][0]["subresources"] == {"status": {}}
    assert document["metadata"]["name"] == f"{kind.PLURAL}.tarsy.dev"


def test_committed_crds_are_current():
    assert check_crds(CRDS) == []


def test_generation_is_deterministic_and_reads_back():
    generated = files()
    for kind in KINDS.values():
        assert yaml.load(generated[f"{kind.PLURAL}.yaml"], Loader=LOADER) == crd(kind)
    kustomization = yaml.safe_load(generated["kustomization.yaml"])
    assert kustomization["resources"] == [f"{kind.PLURAL}.yaml" for kind in KINDS.values()]


def test_check_names_stale_missing_and_surplus_files(tmp_path):
    write_crds(tmp_path / "crds")
    (tmp_path / "crds" / "alerts.yaml").write_text("{}\n")
    (tmp_path / "crds" / "chains.yaml").unlink()
    (tmp_path / "crds" / "old.yaml").write_text("{}\n")
    assert check_crds(tmp_path / "crds") == [
        "alerts.yaml differs from the models; run `tarsy crds`",
        "chains.yaml is missing; run `tarsy crds`",
        "old.yaml belongs to no kind; delete it",
    ]


class Union(Model):
    either: int | str


class Itself(Model):
    child: "Itself | None" = None


class BoundsOutside(Model):
    names: Annotated[tuple[str, ...], Unique()] | None = Field(default=None, max_length=3)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Union, "Union.either: is a union of 2 types"),
        (Itself, "the model contains itself"),
        (BoundsOutside, "BoundsOutside.names: put the bounds of the list before Unique"),
    ],
)
def test_model_without_a_structural_form_is_refused_by_field(model, message):
    with pytest.raises(NotStructural, match=message):
        structural(model)
