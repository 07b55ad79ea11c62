"""Tests how hosts are resolved and checked."""

import socket

import pytest

from tarsy.outbound.address_check import Found, NotAllowed, Of, judged
from tarsy.plan.destinations import Destinations

POD = Of(Destinations(in_pod=True), "shop")
PUBLIC = "93.184.215.14"


class Names:
    """What names are found at; notes who is asked for."""

    def __init__(self, **found: Found) -> None:
        self.found = {name.replace("_", "."): answer for name, answer in found.items()}
        self.asked: list[str] = []

    async def __call__(self, name: str, port: int) -> Found:
        self.asked.append(name)
        if name not in self.found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self.found[name]


async def test_addresses_are_judged_and_given_in_their_order() -> None:
    names = Names(a_example_=Found((PUBLIC, "2606:2800:21f::1"), "a.example"))
    assert await judged("A.example.", 443, POD, names) == (PUBLIC, "2606:2800:21f::1")
    assert names.asked == ["a.example."]


async def test_one_inner_address_among_public_ones_is_enough_to_refuse() -> None:
    with pytest.raises(NotAllowed, match=r"host evil\.example has an address that is not public"):
        await judged("evil.example", 80, POD, Names(evil_example_=Found((PUBLIC, "10.0.0.1"))))


@pytest.mark.parametrize("literal", ["10.0.0.1", "169.254.169.254", "::1", "fd00::1"])
async def test_a_literal_is_judged_and_not_looked_up(literal: str) -> None:
    names = Names()
    with pytest.raises(NotAllowed):
        await judged(literal, 80, POD, names)
    assert await judged(PUBLIC, 80, POD, names) == (PUBLIC,)
    assert names.asked == []


async def test_a_name_that_is_not_found_is_refused_in_a_sentence() -> None:
    said = r"host gone\.shop\.svc is not found, looked up as gone\.shop\.svc\.cluster\.local\.: Name or service"
    with pytest.raises(socket.gaierror, match=said):
        await judged("gone.shop.svc", 80, POD, Names())
    with pytest.raises(socket.gaierror, match=r"host gone is not found: Name or service"):
        await judged("gone", 80, Of(Destinations()), Names())
    with pytest.raises(socket.gaierror, match="has no address"):
        await judged("empty.example", 80, POD, Names(empty_example_=Found(())))


async def test_a_service_of_the_namespace_may_be_inside_and_an_alias_for_elsewhere_may_not() -> None:
    asked = "tools.shop.svc.cluster.local"
    own = Names(tools_shop_svc_cluster_local_=Found(("10.0.0.1",), asked))
    assert await judged("tools.shop.svc", 80, POD, own) == ("10.0.0.1",)
    alias = Names(tools_shop_svc_cluster_local_=Found(("10.0.0.1",), "vault.prod.svc.cluster.local"))
    with pytest.raises(NotAllowed, match="not public"):
        await judged("tools.shop.svc", 80, POD, alias)


async def test_the_system_finds_this_machine() -> None:
    assert set(await judged("localhost", 80, Of(Destinations()))) <= {"127.0.0.1", "::1"}
