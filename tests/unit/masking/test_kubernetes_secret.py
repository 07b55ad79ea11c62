"""Tests that values of Kubernetes Secrets are masked in every format, and that documents still parse."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from properties import examples
from tarsy.masking import build_masker

MASKER = build_masker([], ["kubernetes_secret"])
TAG = "[MASKED_SECRET_DATA]"
CONFIG = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "labels": {"app": "x"}},
    "data": {"color": "bright blue", "app.conf": "a = 1\nb = 2\n"},
}
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "db", "uid": "3f8a1c52-9d7e-4b6a-8c1d-2e5f7a9b0c3d"},
    "type": "Opaque",
    "data": {"password": "aHVudGVyMjI=", "tls.crt": "LS0tLS1CRUdJTi" + "A" * 200},
    "stringData": {"plain": "two words", "many": "one line\nand another\n\nand a third", "colon": "a: b # c"},
}
MASKED = SECRET | {"data": dict.fromkeys(SECRET["data"], TAG), "stringData": dict.fromkeys(SECRET["stringData"], TAG)}
VALUES = [*SECRET["data"].values(), "two words", "one line", "and another", "and a third", "a: b"]
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _bare(value: dict[str, Any]) -> dict[str, Any]:
    return {key: part for key, part in value.items() if key not in ("apiVersion", "kind")}


SHAPES: dict[str, tuple[Any, Any]] = {
    "alone": (SECRET, MASKED),
    "in a List": (
        {"apiVersion": "v1", "kind": "List", "items": [CONFIG, SECRET, CONFIG, SECRET]},
        {"apiVersion": "v1", "kind": "List", "items": [CONFIG, MASKED, CONFIG, MASKED]},
    ),
    "in a SecretList, without their kinds": (
        {"apiVersion": "v1", "kind": "SecretList", "items": [_bare(SECRET), _bare(SECRET)]},
        {"apiVersion": "v1", "kind": "SecretList", "items": [_bare(MASKED), _bare(MASKED)]},
    ),
    "in an array": ([CONFIG, SECRET, CONFIG], [CONFIG, MASKED, CONFIG]),
    "deep inside": ({"a": [{"b": {"c": [SECRET, CONFIG]}}]}, {"a": [{"b": {"c": [MASKED, CONFIG]}}]}),
    "a ConfigMap": (CONFIG, CONFIG),
}


def _yaml(value: Any, *, blocks: bool = False, **options: Any) -> str:
    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

        def represent_str(self, data: str) -> yaml.ScalarNode:
            return self.represent_scalar("tag:yaml.org,2002:str", data, "|" if blocks and "\n" in data else None)

    Dumper.add_representer(str, Dumper.represent_str)
    text: str = yaml.dump(value, Dumper=Dumper, **options)
    return text


DUMPS = {
    "yaml": _yaml,
    "yaml unsorted": lambda value: _yaml(value, sort_keys=False),
    "yaml indented by 4": lambda value: _yaml(value, indent=4),
    "yaml quoted": lambda value: _yaml(value, default_style="'"),
    "yaml double-quoted": lambda value: _yaml(value, default_style='"'),
    "yaml blocks": lambda value: _yaml(value, blocks=True),
    "yaml with CRLF": lambda value: _yaml(value).replace("\n", "\r\n"),
    "yaml wide": lambda value: _yaml(value, width=1000),
    "json": json.dumps,
    "json compact": lambda value: json.dumps(value, separators=(",", ":")),
    "json indented": lambda value: json.dumps(value, indent=2),
    "json with tabs": lambda value: json.dumps(value, indent="\t", sort_keys=True),
}


def _load(text: str) -> Any:
    return json.loads(text) if text.startswith(("{", "[")) else yaml.safe_load(text)


@for_each("dump", DUMPS)
@for_each("shape", SHAPES)
def test_values_of_secrets_are_masked_and_nothing_else(shape: str, dump: str) -> None:
    value, expected = SHAPES[shape]
    masked = MASKER.mask(DUMPS[dump](value))
    assert _load(masked) == expected
    assert MASKER.mask(masked) == masked


@pytest.mark.parametrize("dump", DUMPS)
def test_a_text_of_config_maps_stays_byte_for_byte(dump: str) -> None:
    text = DUMPS[dump]({"kind": "List", "items": [CONFIG, CONFIG]}) + "\nkind: Secret of success\n"
    assert MASKER.mask(text) == text


@pytest.mark.parametrize("indent", ["", "  ", "> ", "+", "    "])
def test_documents_of_a_stream_are_told_apart(indent: str) -> None:
    documents = [CONFIG, SECRET, CONFIG, SECRET, CONFIG]
    text = "".join(indent + line for line in "---\n".join(map(_yaml, documents)).splitlines(keepends=True))
    masked = MASKER.mask(text)
    assert [value for value in VALUES if value in masked] == []
    assert masked.count("bright blue") == 3
    if not indent:
        assert list(yaml.safe_load_all(masked)) == [CONFIG, MASKED, CONFIG, MASKED, CONFIG]


@for_each("levels", [1, 2, 3, 4])
@for_each("dump", ["json", "json indented", "yaml", "yaml unsorted"])
def test_a_document_inside_strings_is_masked(dump: str, levels: int) -> None:
    text, expected = (
        DUMPS[dump]({"kind": "List", "items": [CONFIG, SECRET]}),
        {"kind": "List", "items": [CONFIG, MASKED]},
    )
    for _ in range(levels):
        text = json.dumps({"note": 'say "hi"', "text": text})
    masked = json.loads(MASKER.mask(text))
    for _ in range(levels - 1):
        assert masked["note"] == 'say "hi"'
        masked = json.loads(masked["text"])
    assert _load(masked["text"]) == expected


@pytest.mark.parametrize("dump", DUMPS)
def test_the_annotation_of_kubectl_apply_is_masked(dump: str) -> None:
    applied = json.dumps(SECRET, separators=(",", ":")) + "\n"
    around = CONFIG | {"metadata": {"name": "x", "annotations": {APPLIED: applied}}}
    masked = _load(MASKER.mask(DUMPS[dump](around)))
    assert json.loads(masked["metadata"]["annotations"][APPLIED]) == MASKED
    assert masked["data"] == CONFIG["data"]


def test_more_levels_than_anybody_needs_are_masked_whole() -> None:
    text = json.dumps(SECRET)
    for _ in range(7):
        text = json.dumps({"text": text})
    masked = MASKER.mask(text)
    assert "aHVudGVyMjI" not in masked
    json.loads(masked)


@pytest.mark.parametrize("text", [_yaml(SECRET), json.dumps(SECRET), json.dumps(SECRET, indent=1)])
def test_a_secret_in_prose_fences_and_log_lines_is_masked(text: str) -> None:
    around = (
        f'I found "this:\n```yaml\n{text}\n```\nand {{that}} is it.\n2026 INFO msg="got" obj={json.dumps(SECRET)} n=1\n'
    )
    masked = MASKER.mask(around + _yaml(CONFIG))
    assert [value for value in VALUES if value in masked] == []
    assert masked.startswith('I found "this:\n```yaml\n')
    assert masked.endswith(_yaml(CONFIG))


@pytest.mark.parametrize("text", [_yaml(SECRET, sort_keys=False), json.dumps(SECRET), json.dumps([SECRET], indent=2)])
def test_a_secret_that_was_cut_off_is_masked(text: str) -> None:
    for end in range(text.index("aHVudGVyMjI=") + 6, len(text), 7):
        masked = MASKER.mask(text[:end])
        assert "aHVudG" not in masked
        assert "two wor" not in masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("{kind: Secret, data: {a: Yg==, b: c}}", '{kind: Secret, data: {a: "@", b: "@"}}'),
        ("{'kind': 'Secret', 'data': {'a': 'Yg=='}}", "{'kind': 'Secret', 'data': {'a': '@'}}"),
        ("kind: Secret\ndata: {}\n", "kind: Secret\ndata: {}\n"),
        ("kind: Secret\ndata:\n  a:\n  b: \"\"\n", "kind: Secret\ndata:\n  a:\n  b: \"\"\n"),
        ("kind: Secret\ndata:\n  # old: x\n  a: b\n", 'kind: Secret\ndata:\n  # @\n  a: "@"\n'),
        ('{"kind":"Secret","data":null}', '{"kind":"Secret","data":null}'),
        ("kind: Secret # yes\ndata: # here\n  a: b\n", 'kind: Secret # yes\ndata: # here\n  a: "@"\n'),
    ],
)  # fmt: skip
def test_other_forms(text: str, masked: str) -> None:
    assert MASKER.mask(text) == masked.replace("@", TAG)


def test_an_event_about_a_secret_is_no_secret() -> None:
    event = {"kind": "Event", "involvedObject": {"kind": "Secret", "name": "db"}, "data": {"count": "3"}}
    for dump in DUMPS.values():
        assert MASKER.mask(dump(event)) == dump(event)


_KEYS = st.from_regex(r"[a-zA-Z0-9._-]{1,12}", fullmatch=True)
_VALUES = st.one_of(
    st.text(max_size=40), st.binary(max_size=30).map(lambda value: __import__("base64").b64encode(value).decode())
)


@examples(150)
@given(
    data=st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=4),
    config=st.dictionaries(_KEYS, _VALUES, max_size=3),
    dump=st.sampled_from(sorted(DUMPS)),
)
def test_whatever_a_secret_holds_its_document_keeps_its_shape(
    data: dict[str, str], config: dict[str, str], dump: str
) -> None:
    value = {"kind": "List", "items": [CONFIG | {"data": config}, SECRET | {"stringData": data}]}
    text = DUMPS[dump](value)
    before = _load(text)
    masked = MASKER.mask(text)
    after = _load(masked)
    assert after["items"][0] == before["items"][0]
    hidden = {key: TAG if part else part for key, part in before["items"][1]["stringData"].items()}
    assert after["items"][1] == MASKED | {"stringData": hidden}
    assert MASKER.mask(masked) == masked
