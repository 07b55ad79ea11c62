"""Tests that private keys are masked however their lines are encoded."""

from urllib.parse import quote, quote_plus

import pytest

from for_each import for_each
from tarsy.masking import StreamingMasker, default_masker

DEFAULT = default_masker()
BODY = (
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
    "MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu",
    "NMoSfm76oqFvAp8Gy0iz5sxjZmSnXyCdPEovGhLa0VzMaQ8s+CLOyS56YyCFGeJZ",
    "QBxKNA7sYw1d9fR3kQ==",
)
KEY = "\n".join(("-----BEGIN PRIVATE KEY-----", *BODY, "-----END PRIVATE KEY-----", ""))


def _all(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def _lower(text: str) -> str:
    return quote(text, safe="").replace("%2B", "%2b").replace("%2F", "%2f").replace("%0A", "%0a").replace("%3D", "%3d")


ENCODINGS = {
    "percent": quote,
    "percent, all marks": lambda text: quote(text, safe=""),
    "plus": quote_plus,
    "lower": _lower,
    "all": _all,
    "all, lower": lambda text: _all(text).lower(),
    "dashes": lambda text: quote(text, safe="").replace("-", "%2D"),
    "letters": lambda text: "".join(_all(character) if character.isalpha() else quote(character) for character in text),
    "CR LF": lambda text: quote(text.replace("\n", "\r\n"), safe=""),
    "twice": lambda text: quote(quote(text)),
    "plus, twice": lambda text: quote(quote_plus(text)),
    "blanks only": lambda text: text.replace(" ", "%20"),
    "escapes": lambda text: "".join(f"\\u{ord(character):04x}" for character in text),
    "entities": lambda text: "".join(f"&#{ord(character)};" for character in text),
}
KEYS = {
    "whole": KEY,
    "RSA": KEY.replace("PRIVATE", "RSA PRIVATE"),
    "cut off": KEY[: KEY.index(BODY[2]) + 40],
    "cut off in the first line": KEY[:60],
    "without its beginning": KEY[40:],
    "encrypted": KEY.replace(BODY[0], "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,A0B1C2D3\n\n" + BODY[0]),
}
FRAMES = ("got {} now", "GET https://x.example/login?k={}&z=1 HTTP/1.1", '{"key": "{}", "z": 1}', "a\nkey={}\nb: c")


def _pieces(key: str, encode: object) -> list[str]:
    """Returns the encoded pieces of ten bytes that the key consists of."""
    pieces = [line[at : at + 10] for line in BODY for at in range(0, len(line) - 9, 10) if line[at : at + 10] in key]
    return [encode(piece) for piece in pieces]  # type: ignore[operator]


@for_each("encoding", ENCODINGS)
@for_each("key", KEYS)
def test_an_encoded_key_is_masked(encoding: str, key: str) -> None:
    encode = ENCODINGS[encoding]
    for frame in FRAMES:
        before, after = frame.split("{}") if frame[0] != "{" else ('{"key": "', '", "z": 1}')
        text = before + encode(KEYS[key]) + after
        masked = DEFAULT.mask(text)
        assert [piece for piece in _pieces(KEYS[key], encode) if piece in masked] == []
        assert masked.startswith(before.rstrip("key=")) and masked.endswith(after)  # `key=` may be base64
        assert DEFAULT.mask(masked) == masked


@for_each("encoding", ENCODINGS)
@pytest.mark.parametrize("longest", [1, 50])
def test_an_encoded_key_is_not_shown_while_it_streams(encoding: str, longest: int) -> None:
    encode, stream = ENCODINGS[encoding], StreamingMasker(DEFAULT)
    text = f"it says\nkey={encode(KEY)}\nand more\n"
    seen = "".join(stream.add(text[at : at + longest]) for at in range(0, len(text), longest))
    assert [piece for piece in _pieces(KEY, encode) if piece in seen] == []
    assert DEFAULT.mask(text).startswith(seen)


@pytest.mark.parametrize(
    "text",
    [
        "GET /docs?q=-----BEGIN+a+story-----",
        "header -----BEGIN%20PRIVATE%20KEY----- is missing",
        "a%2D%2Db and %2D%2D%2D%2D%2D of %42%45",
        "-----BEGIN+PUBLIC+KEY",
    ],
)
def test_what_only_begins_like_an_encoded_key_stays(text: str) -> None:
    assert DEFAULT.mask(text) == text
