"""Which addresses are public."""

from __future__ import annotations

import pytest

from for_each import for_each
from tarsy.plan.destinations import is_public


@pytest.mark.parametrize("address", ["140.82.121.4", "8.8.8.8", "2606:50c0:8000::154"])
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)


@for_each(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "10.96.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "198.18.0.1",
        "192.0.2.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "fd00::1",
        "ff02::1",
        "2001:db8::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b::10.0.0.1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2001:0:4136:e378:8000:63bf:f5ff:fffe",
        "",
        "localhost",
    ],
)
def test_an_inner_address_is_not_public_however_it_is_spelled(address: str) -> None:
    assert not is_public(address)
