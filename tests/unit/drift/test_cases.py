"""The cases can be read, say what they ask, and are explained in the room's README as in the report."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.drift import explained
from tests.drift.cases import CaseError, load

README = Path(__file__).parents[3] / "operator/kubeapi/README.md"


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], object]:
    def read(case: str) -> object:
        (tmp_path / "x.yaml").write_text(f"cases:\n- {case}\n")
        return load(tmp_path)

    return read


def test_there_are_enough_questions_and_each_explanation_is_of_one() -> None:
    cases = {case.id for case in load()}
    assert len(cases) >= 150
    assert set(explained.by_case(explained.load())) <= cases


@pytest.mark.parametrize(
    ("case", "wrong"),
    [
        ("{id: a, kubectl: get pods, dtail: shape}", "x/a: unknown field dtail"),
        ("{id: a}", "x/a: give either kubectl or call"),
        ("{id: a, kubectl: get pods, call: GET /}", "x/a: give either kubectl or call"),
        ("{id: a, call: GET /, detail: some}", "x/a: detail must be one of values, shape, status"),
        ("{id: A b, call: GET /}", "x/A b: id must be small letters"),
        ("{id: a, call: GET /}\n- {id: a, call: GET /api}", "x/a: this name is used twice"),
    ],
)
def test_a_case_that_is_written_wrong_is_named(read: Callable[[str], object], case: str, wrong: str) -> None:
    with pytest.raises(CaseError, match=wrong):
        read(case)


def test_the_readme_has_the_table_of_explanations() -> None:
    readme = README.read_text()
    missing = [row for row in explained.markdown(explained.load()) if row not in readme]
    assert not missing, "python -m tests.drift --table prints what belongs there"
