"""Parses a URL of a spec so that every HTTP client reads it alike, or rejects it.

Decision: URL parsers disagree on everything that is unusual: letters and digits that Unicode maps to ASCII, short and
octal IPv4 addresses, percent-encoding, backslashes, user info. So only URLs that all of them read alike are taken, and
a client gets the canonical form that was judged, never the text that somebody wrote.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

ServiceAddress = IPv4Address | IPv6Address
_URL = re.compile(r"(https?)://([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::(.*))?", re.DOTALL)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONGEST_NAME = 253
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Place:
    """The destination of an HTTP request.

    Args:
        scheme: `http` or `https`.
        host: A name in lower case without a dot at its end, or an address without brackets.
        port: The port, also where the URL names none.
        address: The host where it is an address; None for a name.
        url: The canonical URL, which every client reads as this place.
    """

    scheme: str
    host: str
    port: int
    address: ServiceAddress | None
    url: str

    @classmethod
    def of(cls, url: str) -> Place:
        """Reads a URL.

        Raises:
            ValueError: clients might read it in different ways, or it is not an HTTP URL; its text is a sentence that
                begins with "the URL" and holds the remedy.
        """
        if odd := next((c for c in url if not "\x20" < c < "\x7f" or c == "\\"), None):
            raise ValueError(
                f"the URL contains the character U+{ord(odd):04X}; use ASCII only: write an internationalized "
                "host name in its form that begins with xn--, and percent-encode the rest"
            )
        if (parts := _URL.fullmatch(url)) is None:
            raise ValueError("the URL must begin with http:// or https://")
        scheme, authority, rest = parts[1].lower(), parts[2], parts[3]
        if "@" in authority:
            raise ValueError("the URL contains a user name or a password; remove them and put them into a Secret")
        if (found := _AUTHORITY.fullmatch(authority)) is None:
            raise ValueError("the URL has no readable host; write a name, an IPv4 address or an [IPv6 address]")
        host, address = _host(found[1])
        default = _PORTS[scheme]
        port = default if found[2] is None else _port(found[2])
        shown = f"[{host}]" if isinstance(address, IPv6Address) else host
        authority = shown if port == default else f"{shown}:{port}"
        return cls(scheme, host, port, address, f"{scheme}://{authority}{rest}")


def _host(text: str) -> tuple[str, ServiceAddress | None]:
    if text.startswith("["):
        try:
            address = IPv6Address(text[1:-1])
        except ValueError:
            address = None
        if address is None or address.scope_id is not None:
            raise ValueError(f"the URL's host {text} is not an IPv6 address; leave out what follows a %")
        return str(address), address
    host = text.lower()
    labels = host.removesuffix(".").split(".")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return host, IPv4Address(host)  # which takes four decimal numbers without leading zeros, and no more
        except ValueError:
            raise ValueError(
                f"the URL's host {text} is not an IPv4 address of four decimal numbers; write it as 192.0.2.1"
            ) from None
    host = ".".join(labels)
    if len(host) > _LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(
            f"the URL's host {text or '(none)'} is not a host name; write letters, digits, '-', '_' and single dots"
        )
    return host, None


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        raise ValueError(f"the URL's port {text or '(none)'} is not a number between 1 and 65535")
    return int(text)
