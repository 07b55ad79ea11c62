"""Computes the answer to a tool call from a recorded result that contains more.

| asked | recorded |
|---|---|
| the last lines of a log | more of its last lines, or all of it |
| objects with a label, a name or a namespace | a list of all of them, as JSON, YAML or a table |
| one object by name | a list in JSON or YAML that contains it |

A superset is taken for what it is only where that is certain: all other arguments mean the same, and the recorded
result is no error. Whatever is not certain is not derived; it is a miss.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import orjson
import yaml

from tarsy.evals.cassette import RecordedCall

TAIL_KEYS: Final = frozenset({"tail", "taillines", "tailline"})
SELECTOR_KEYS: Final = frozenset({"labelselector", "labelselectors", "selector"})
NAME_KEYS: Final = frozenset({"name", "podname", "resourcename"})
NAMESPACE_KEYS: Final = frozenset({"namespace"})
_NARROWING = SELECTOR_KEYS | NAME_KEYS | NAMESPACE_KEYS
MOST_BYTES: Final = 4 << 20
"""Maximum size of a result from which another is computed."""
_LIST = re.compile(r"(?:^|_)list(?:$|_)")
_GET = re.compile(r"(?:^|_)get(?:$|_)")
_SPACE = re.compile(r"\s{2,}")
_IN = re.compile(r"^(\S+)\s+(in|notin)\s+\(([^()]*)\)$")

_Object = Mapping[str, object]
_Arguments = Mapping[str, object]


def derive(tool: str, meaning: str, call: RecordedCall, recorded_meaning: str) -> str | None:
    """Returns the answer computed from a recorded call; None: it cannot be computed from that one.

    Args:
        tool: the tool that is called.
        meaning: its arguments, normalised.
        call: a recorded call of the same server.
        recorded_meaning: the arguments of the recorded call, normalised.
    """
    if call.is_error or len(call.result) > MOST_BYTES:
        return None
    asked, recorded = _arguments(meaning), _arguments(recorded_meaning)
    if asked is None or recorded is None:
        return None
    if tool == call.tool and (tail := _tail(asked, recorded, call.result)) is not None:
        return tail
    return _selected(tool, asked, call, recorded)


def _arguments(meaning: str) -> _Arguments | None:
    try:
        found = orjson.loads(meaning) if meaning else {}
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _plain(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _only(arguments: _Arguments, keys: frozenset[str]) -> dict[str, object]:
    return {_plain(key): value for key, value in arguments.items() if _plain(key) in keys}


def _without(arguments: _Arguments, keys: frozenset[str]) -> dict[str, object]:
    return {key: value for key, value in arguments.items() if _plain(key) not in keys}


def _tail(asked: _Arguments, recorded: _Arguments, log: str) -> str | None:
    """Returns the last lines of a log of which more is recorded."""
    wanted, had = _only(asked, TAIL_KEYS), _only(recorded, TAIL_KEYS)
    if len(wanted) != 1 or len(had) > 1 or _without(asked, TAIL_KEYS) != _without(recorded, TAIL_KEYS):
        return None
    lines, kept = next(iter(wanted.values())), next(iter(had.values()), None)
    if not isinstance(lines, int) or isinstance(lines, bool) or lines < 0:
        return None
    if kept is not None and not (isinstance(kept, int) and (kept >= lines or kept < 0)):
        return None
    return "".join(log.splitlines(keepends=True)[-lines:]) if lines else ""


def _selected(tool: str, asked: _Arguments, call: RecordedCall, recorded: _Arguments) -> str | None:
    """Returns the objects of a recorded list that are asked for."""
    wanted, had = _only(asked, _NARROWING), _only(recorded, _NARROWING)
    if _without(asked, _NARROWING) != _without(recorded, _NARROWING):
        return None
    narrower = {key: value for key, value in wanted.items() if had.get(key) != value}
    if not narrower or any(wanted.get(key) != value for key, value in had.items()):
        return None
    one = tool != call.tool
    if one and not (_lists_what(call.tool, tool) and NAME_KEYS & narrower.keys()):
        return None
    fits = _filter(narrower)
    if fits is None:
        return None
    return _from_objects(call.result, fits, one=one) if one else _from_any(call.result, narrower, fits)


def _lists_what(recorded: str, asked: str) -> bool:
    """Returns whether a recorded tool lists what the asked one gets, such as `pods_list` and `pods_get`."""
    if not _LIST.search(recorded) or not _GET.search(asked):
        return False
    subject = _LIST.split(recorded, maxsplit=1)[0].strip("_")
    return subject == _GET.split(asked, maxsplit=1)[0].strip("_") and bool(subject)


_Fits = Callable[[str, str, Mapping[str, str] | None], bool]
"""Whether an object is asked for, by its name, its namespace and its labels (None: not known)."""


def _filter(narrower: Mapping[str, object]) -> _Fits | None:
    if not all(isinstance(value, str) for value in narrower.values()):
        return None
    name = next((str(narrower[key]) for key in sorted(NAME_KEYS & narrower.keys())), None)
    namespace = next((str(narrower[key]) for key in sorted(NAMESPACE_KEYS & narrower.keys())), None)
    terms: Sequence[_Term] = ()
    for key in sorted(SELECTOR_KEYS & narrower.keys()):
        parsed = parse_selector(str(narrower[key]))
        if parsed is None:
            return None
        terms = (*terms, *parsed)

    def fits(of_name: str, of_namespace: str, labels: Mapping[str, str] | None) -> bool:
        if name is not None and of_name != name:
            return False
        if namespace is not None and of_namespace != namespace:
            return False
        return not terms or (labels is not None and all(term(labels) for term in terms))

    return fits


_Term = Callable[[Mapping[str, str]], bool]


def parse_selector(selector: str) -> Sequence[_Term] | None:
    """Returns the conditions of a label selector; None: it is none that this reads.

    Args:
        selector: such as `app=web,tier in (front, back),!canary`.
    """
    terms: list[_Term] = []
    for part in re.split(r",(?![^(]*\))", selector):
        text = part.strip()
        term = _term(text) if text else None
        if term is None:
            return None
        terms.append(term)
    return terms


def _term(text: str) -> _Term | None:
    if found := _IN.match(text):
        key, how, listed = found[1], found[2], {value.strip() for value in found[3].split(",")}
        return lambda labels: (labels.get(key) in listed) == (how == "in")
    if "!=" in text:
        key, _, value = text.partition("!=")
        return lambda labels: labels.get(key.strip()) != value.strip()
    if "=" in text:
        key, _, value = text.replace("==", "=").partition("=")
        return lambda labels: labels.get(key.strip()) == value.strip()
    if any(char.isspace() for char in text):
        return None
    if text.startswith("!"):
        return lambda labels: text[1:].strip() not in labels
    return lambda labels: text in labels


def _from_any(result: str, narrower: Mapping[str, object], fits: _Fits) -> str | None:
    found = _from_objects(result, fits, one=False, by_namespace=bool(NAMESPACE_KEYS & narrower.keys()))
    return _from_table(result, narrower, fits) if found is None else found


def _from_objects(result: str, fits: _Fits, *, one: bool, by_namespace: bool = False) -> str | None:
    """Returns the objects of a list in JSON or YAML, in the same format; None: it is no such list, or has not the one.

    A list without an object of a namespace may be a list of another namespace, so nothing follows from it.
    """
    is_json = result.lstrip().startswith(("{", "["))
    whole = _load(result, is_json=is_json)
    items = whole.get("items") if isinstance(whole, dict) else whole
    if not isinstance(items, list) or not items or not all(_is_object(item) for item in items):
        return None
    chosen = [item for item in items if _fits_object(item, fits)]
    if one:
        return _dump(chosen[0], is_json=is_json) if len(chosen) == 1 else None
    if _is_partial(whole) or (not chosen and by_namespace):
        return None
    return _dump({**whole, "items": chosen} if isinstance(whole, dict) else chosen, is_json=is_json)


def _is_partial(whole: object) -> bool:
    """Returns whether a list is one page of several."""
    meta = whole.get("metadata") if isinstance(whole, dict) else None
    return isinstance(meta, dict) and bool(meta.get("continue"))


def _load(text: str, *, is_json: bool) -> object:
    try:
        return orjson.loads(text) if is_json else yaml.load(text, Loader=yaml.CSafeLoader)
    except (orjson.JSONDecodeError, yaml.YAMLError, RecursionError, ValueError):
        return None


def _dump(value: object, *, is_json: bool) -> str:
    if is_json:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode()
    return str(yaml.dump(value, sort_keys=False, Dumper=yaml.CSafeDumper))


def _is_object(item: object) -> bool:
    return isinstance(item, dict) and isinstance(item.get("metadata"), dict)


def _fits_object(item: _Object, fits: _Fits) -> bool:
    meta = item["metadata"]
    assert isinstance(meta, dict)
    labels = meta.get("labels") or {}
    known = {str(key): str(value) for key, value in labels.items()} if isinstance(labels, dict) else {}
    return fits(str(meta.get("name", "")), str(meta.get("namespace", "")), known)


def _from_table(result: str, narrower: Mapping[str, object], fits: _Fits) -> str | None:
    """Returns the rows of a table as kubectl prints it, with its head; None: it is none, or lacks a needed column."""
    lines = result.splitlines(keepends=True)
    head = [column.strip().upper() for column in _SPACE.split(lines[0].strip())] if lines else []
    needed = {"NAME"} if NAME_KEYS & narrower.keys() else set()
    needed |= {"NAMESPACE"} if NAMESPACE_KEYS & narrower.keys() else set()
    needed |= {"LABELS"} if SELECTOR_KEYS & narrower.keys() else set()
    if "NAME" not in head or not needed <= set(head):
        return None
    kept = [lines[0]]
    for line in lines[1:]:
        cells = _SPACE.split(line.strip())
        if len(cells) != len(head):
            return None
        row = dict(zip(head, cells, strict=True))
        if fits(row["NAME"], row.get("NAMESPACE", ""), _labels(row["LABELS"]) if "LABELS" in row else None):
            kept.append(line)
    if len(kept) == 1 and NAMESPACE_KEYS & narrower.keys():
        return None
    return "".join(kept)


def _labels(cell: str) -> Mapping[str, str]:
    pairs = (pair.partition("=") for pair in cell.split(",") if "=" in pair)
    return {key: value for key, _, value in pairs}
