"""Masks values of Kubernetes Secrets in YAML and JSON, also in documents inside strings of other documents.

A document inside a JSON string (`last-applied-configuration`, a tool result that wraps YAML) is unescaped, masked and
escaped again, a few levels deep. A string that names a Secret and cannot be unescaped is masked whole: no parse error
lets a Secret pass, and hostile text costs no more than other text. ConfigMaps are never changed.
"""

import json
import re

from tarsy.masking.engine import Regex
from tarsy.masking.secret_json import JsonSecrets
from tarsy.masking.secret_yaml import YamlSecrets
from tarsy.masking.yaml_context import TAG

_KIND = rb"""kind[\\"']*[ ]*:\s*[\\"']*Secret"""

_LEVELS = 4
_FOLD = re.compile(rb"\\(?:\r?\n[ \t]*+(\\ )?+|[^\n])", re.DOTALL)  # folds of double-quoted YAML strings
_MANY_STRINGS = 500
_BYTES_PER_STRING = 64  # a text with that many strings of fewer bytes is hostile: the rest is masked whole


class KubernetesSecrets:
    """Masks `data` and `stringData` of Secret, SecretList and Secrets in lists."""

    def __init__(self) -> None:
        self._kind = Regex(_KIND, capture=False)
        self._json = JsonSecrets()
        self._yaml = YamlSecrets()
        inside = rb'(?:[^"\\\n]|\\(?s:.))*'
        kind = rb"""kind\\*["']?[ ]*:(?:[ ]|\\n)*\\*["']?Secret(?:List)?\b"""
        self._strings = Regex(rb'"(' + inside + kind + inside + rb')"')
        self._data = Regex(rb"""(?:string)?[dD]ata\\*["']?[ ]*:""", capture=False)

    def named(self, text: bytes) -> bool:
        """Returns whether a text may contain a Secret."""
        return self._kind.search(text) is not None

    def mask(self, text: bytes) -> bytes:
        """Replaces the values of Secrets by `[MASKED_SECRET_DATA]`."""
        return self._masked(text, _LEVELS)

    def _masked(self, text: bytes, levels: int) -> bytes:
        if not self._data.search(text):
            return text
        if b"\\" in text:
            text = self._within_strings(text, levels)
        return self._yaml.mask(self._json.mask(text))

    def _within_strings(self, text: bytes, levels: int) -> bytes:
        pieces: list[bytes] = []
        done = 0
        for found in self._strings.spans(text):
            start, end = found[1]
            escaped = text[start:end]
            if b"\\" not in escaped or not self._data.search(escaped):
                continue
            if len(pieces) > 2 * _MANY_STRINGS and 2 * start < len(pieces) * _BYTES_PER_STRING:
                return b"".join((*pieces, text[done:start], TAG))
            pieces += text[done:start], self._string(escaped, levels if len(pieces) < 2 * _MANY_STRINGS else 0)
            done = end
        return b"".join((*pieces, text[done:])) if pieces else text

    def _string(self, escaped: bytes, levels: int) -> bytes:
        if not levels:
            return TAG
        try:
            unfolded = _FOLD.sub(_space, escaped) if b"\n" in escaped else escaped
            inner = json.loads(b'"' + unfolded + b'"', strict=False).encode()
        except ValueError:  # not a JSON string: a YAML escape, or half of a surrogate pair
            return TAG
        masked = self._masked(inner, levels - 1)
        return escaped if masked == inner else json.dumps(masked.decode(), ensure_ascii=False)[1:-1].encode()


def _space(fold: re.Match[bytes]) -> bytes:
    return (b" " if fold[1] else b"") if fold[0][1:2] in (b"\n", b"\r") else fold[0]
