"""Masks Secrets in block YAML: single and multiple documents, list items, fences in prose, quoted and diffed lines.

The text is not read line by line: one regex finds `kind`, `data`, `stringData` and `apiVersion`, and a search for a
line of smaller indentation finds the end of a mapping. The column identifies a mapping. Values are replaced line by
line, so comments, order and everything else are unchanged.
"""

import re
from collections.abc import Iterator

from tarsy.masking.engine import Regex
from tarsy.masking.yaml_context import TAG, Frames

_QUOTED_TAG = b'"' + TAG + b'"'
_MAX_COLUMN = 900
_MARGIN = rb"[ >|+]"

_ENTRY = re.compile(rb"""((?:"[^"\n]*+"|'[^'\n]*+'|[^\s:#"'][^\n:]*+)[ \t]*+:)(?:([ \t]++)([^\n]*+))?""")
_COMMENT = re.compile(rb"(?<![ \t])[ \t]++#.*")
# Most Secrets are lines of a key and a base64 word, which operations in C replace.
_PLAIN_ENTRY = rb"[\w.-]++:[ ][A-Za-z0-9+/]{5,}+={0,2}\r?\n"
_PLAIN = re.compile(rb"([ ]*+)" + _PLAIN_ENTRY + rb"(?:\1" + _PLAIN_ENTRY + rb")*+")
_PLAIN_VALUE = re.compile(rb"(?<=: )[^\r\n]++")
_EMPTY = (b"", b'""', b"''", b"null", b"~", b"{}")


class YamlSecrets:
    """Finds and masks the data of Secrets in block YAML."""

    def __init__(self) -> None:
        self._plain, self._quoted = _keys(b""), _keys(rb"""["']?""")
        end = rb"""[ \t]*(?:[#&!][^\n]*)?\r?$"""
        kind = rb"""kind["']?:[ \t]+["']?Secret(?:List)?["']?"""
        self._data = Regex(rb"""(?m)^[ >|+-]*["']?(?:data|stringData)["']?:""" + end, capture=False)
        self._plain_kind = Regex(rb"(?m)^[ >|+-]*" + kind, capture=False)
        # Lines of JSON look like quoted keys, and are frequent: such keys are read only if one cannot be JSON.
        quoted = rb"""["'](?:(?:data|stringData)["']:|""" + kind + rb")" + end
        self._quoted_key = Regex(rb"(?m)^[ >|+-]*" + quoted, capture=False)
        self._any = Regex(rb"(?m)^[ >|+-]*(?:" + quoted + rb"|" + kind + rb")", capture=False)
        # The same without the beginning of the line: literals first, which RE2 finds ten times as fast.
        kinds = rb"""kind(?::[ \t]+["']?Secret|["']:[ \t]+["']?Secret(?:List)?["']?""" + end + rb")"
        self._likely = Regex(rb"(?m)" + kinds, capture=False), Regex(rb"""(?m)ata["']:""" + end, capture=False)
        self._shallower: dict[int, Regex] = {}
        self._blocks: dict[int, Regex] = {}

    def mask(self, text: bytes) -> bytes:
        """Replaces the values in the data of every Secret."""
        if not self._data.search(text) or not any(likely.search(text) for likely in self._likely):
            return text
        if not self._any.search(text):
            return text
        quoted = self._quoted_key.search(text)
        if not quoted and not self._plain_kind.search(text):
            return text
        frames: Frames[tuple[int, int]] = Frames()
        last = 0
        for found in (self._quoted if quoted else self._plain).spans(text):
            start, (_, margin) = found[0][0], found[1]
            column = margin - start
            if column > _MAX_COLUMN or frames.crowded(start):
                return TAG
            self._close(frames, text, last, start)
            dash = text.rfind(b"-", start, margin)
            if dash >= 0:
                frames.close(dash - start)
            last = found[0][1]
            if found[2][0] >= 0:
                frames.kind(column, text[slice(*found[2])])
            elif found[5][0] >= 0:
                frames.version(column)
            else:
                last = found[4][0]
                frames.data(column, text[slice(*found[3])], (found[4][1], column))
        places = frames.end()
        return self._replaced(text, places) if places else text

    def _close(self, frames: Frames[tuple[int, int]], text: bytes, start: int, end: int) -> None:
        """Closes the mappings that end between two keys, at a line of smaller indentation."""
        after = start
        while frames.depth >= 0:
            found = self._ending(frames.depth).search(text, after if frames.depth else start, end)
            if not found:
                return
            after = found[0][0]  # no line before this one is indented less
            frames.close(frames.depth - 1)

    def _ending(self, column: int) -> Regex:
        if column not in self._shallower:
            less = rb"\n" + _MARGIN + rb"{0,%d}[^\s>|+#]" % (column - 1)
            other = rb"""\n(?:---|[^\s>|+#"'-][^\s:]*(?:[ \t\n]|:[^\s]))"""
            self._shallower[column] = Regex(less if column else other, capture=False)
        return self._shallower[column]

    def _block(self, column: int) -> Regex:
        if column not in self._blocks:
            deeper = _MARGIN + rb"{%d,}[^\s][^\n]*" % (column + 1)
            self._blocks[column] = Regex(rb"(?:(?:" + deeper + rb"|[ \t\r>|+]*)(?:\n|\z))*", capture=False)
        return self._blocks[column]

    def _replaced(self, text: bytes, places: list[tuple[int, int]]) -> bytes:
        pieces: list[bytes] = []
        done = 0
        for start, column in sorted(places):
            if start < done:
                continue
            found = self._block(column).at(text, start)
            end = found[0][1] if found else start
            pieces.append(text[done:start])
            pieces.extend(_hidden(text[start:end]))
            done = end
        return b"".join((*pieces, text[done:]))


def _keys(quote: bytes) -> Regex:
    return Regex(
        rb"(?m)^(" + _MARGIN + rb"*(?:-" + _MARGIN + rb"+)*)" + quote + rb"(?:kind" + quote + rb""":[ \t]+["']?(\w+)"""
        rb"|(data|stringData)" + quote + rb":[ \t]*(?:#[^\n]*|[&!][^\n]*)?(\r?\n|\z)|(apiVersion)" + quote + rb":)"
    )


def _hidden(block: bytes) -> Iterator[bytes]:
    """Yields the lines of a `data` mapping with masked values, without continuation lines."""
    if _PLAIN.fullmatch(block):
        yield _PLAIN_VALUE.sub(_QUOTED_TAG, block)
        return
    column, entry, ending, blank = -1, b"", b"", b""
    for line in block.splitlines(keepends=True):
        bare = line.lstrip(b" >|+")
        if not bare.strip():
            blank += line
            continue
        indent = len(line) - len(bare)
        column = indent if column < 0 else column
        if indent > column:
            blank = b""
            if entry.endswith(b":"):
                entry += b" " + _QUOTED_TAG
            continue
        yield entry + ending + blank
        content = bare.rstrip(b"\r\n")
        entry, ending, blank = line[:indent] + _entry(content), bare[len(content) :], b""
    yield entry + ending + blank


def _entry(line: bytes) -> bytes:
    entry = _ENTRY.match(line)
    if not entry:
        return (b"# " if line.startswith(b"#") else b"") + TAG
    key, space, value = entry.groups()
    bare = _COMMENT.sub(b"", value or b"").strip()
    if bare in _EMPTY or bare.strip(b"\"'") == TAG:
        return line
    return key + space + _QUOTED_TAG
