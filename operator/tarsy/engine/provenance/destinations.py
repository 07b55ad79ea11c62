"""Finds the destinations in the arguments of a call: addresses that something is sent to, fetched or run from.

| found by | destinations |
|---|---|
| declaration (`spec.dataFlow.outboundArguments` with `holds: Address`) | the whole value |
| the last word of a name (`NAMES`), of the argument or a key in it | the whole value |
| the same names inside a text (`image: x`, `--url=x`, JSON) | the value beside the name |
| shape, anywhere in a text | URLs, e-mail and IPv4 addresses, `host.name:port`, images with the host of a registry |

Of a URL, the host and the host with its path are destinations; of an image, the repository without tag or digest.
"""

import re
from collections.abc import Iterator

from tarsy.engine.provenance.leaves import ArgumentValue, words_of

NAMES = frozenset(
    {
        "address",
        "bcc",
        "callback",
        "cc",
        "channel",
        "destination",
        "domain",
        "email",
        "endpoint",
        "host",
        "hostname",
        "href",
        "image",
        "mail",
        "proxy",
        "recipient",
        "registry",
        "repo",
        "repository",
        "to",
        "uri",
        "url",
        "webhook",
    }
)
"""Last words of names whose values are destinations; a plural counts as well."""

LONGEST_DESTINATION = 2_048
"""Characters of a destination; a longer one is cut, and its beginning judged."""

_MASKED = re.compile(r"\[MASKED_[A-Z0-9_]+\]")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}:/{1,3}([^\s\"'<>`\\^{|}]+)")
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")
_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_HOST_PORT = re.compile(r"(?<![\w.@/-])((?:[\w-]+\.)+[A-Za-z][\w-]*):\d{1,5}(?![\w.])")
_IMAGE = re.compile(r"(?<![\w.@/:-])((?:[\w-]+\.)+[\w-]+(?::\d+)?(?:/[\w.-]+)+)(?::[\w.-]+|@sha256:[0-9a-f]+)")
_NAMED = re.compile(r"([A-Za-z][\w-]{1,63})[\"']?\s{0,4}[:=]\s{0,4}[\"']?([^\s\"',;{}\[\]]+)")
_BETWEEN = re.compile(r"[\s,;]+")
_TAG = re.compile(r"(?:@sha256:[0-9a-f]*|:[\w.-]+)$")


def is_destination_name(name: str) -> bool:
    """Returns whether the values of an argument or key of this name are destinations."""
    words = words_of(name)
    return bool(words) and (words[-1] in NAMES or words[-1].removesuffix("s") in NAMES)


def destinations_of(value: ArgumentValue, *, declared: bool = False) -> tuple[str, ...]:
    """Returns the destinations in a value, each once, in their order; none of a number, a boolean or null.

    Args:
        value: of an argument.
        declared: whether the object of the server declares that the argument holds an address.
    """
    if not isinstance(value.value, str):
        return ()
    text = _MASKED.sub(" ", value.value)
    found = list(addresses_in(text))
    if value.is_key:  # most keys are names of fields
        named = not found and "." in text and is_destination_name(value.names[-1])
        found += [text.strip()] if named else []
    elif declared or (value.names and is_destination_name(value.names[-1])):
        found += [one for part in _BETWEEN.split(text) for one in _whole(part)]
    else:
        found += [one for name, beside in _NAMED.findall(text) if is_destination_name(name) for one in _whole(beside)]
    return tuple(dict.fromkeys(one[:LONGEST_DESTINATION] for one in found if one))


def addresses_in(text: str) -> Iterator[str]:
    """Yields what has the shape of an address in a text: hosts of URLs with and without path, e-mails, images."""
    for found in _URL.finditer(text):
        yield from _of_url(found[1])
    rest = _URL.sub(" ", text)
    for pattern in (_EMAIL, _IPV4):
        yield from (found[0] for found in pattern.finditer(rest))
    for pattern in (_HOST_PORT, _IMAGE):
        yield from (found[1] for found in pattern.finditer(rest))


def _of_url(rest: str) -> Iterator[str]:
    """Yields the host of a URL, and the host with its path; `rest` is what follows the scheme."""
    address = re.split(r"[?#]", rest, maxsplit=1)[0]
    authority, slash, path = address.partition("/")
    host = re.sub(r":\d*$", "", authority.rpartition("@")[2])
    if host:
        yield host
        if path.strip("/"):
            yield f"{host}{slash}{path}".rstrip("/.,;)")


def _whole(text: str) -> list[str]:
    """Returns the destinations that a value is: those of its shape, else the value without tag, digest and port."""
    shaped = list(addresses_in(text))
    return shaped or [_TAG.sub("", text.strip().strip("#@/"))]
