"""How URLs are read: as every client reads them, or not at all."""

import httpx
import httpx2
import pytest
import yarl
from hypothesis import example, given
from hypothesis import strategies as st

from for_each import for_each
from tarsy.plan.destinations import Destinations
from tarsy.plan.place import Place

POD = Destinations(in_pod=True)
METADATA = "169.254.169.254"
DIGITS = "".join(chr(0x1FBF0 + int(c)) if c.isdigit() else c for c in METADATA)
FULL_WIDTH = "".join(chr(0xFF10 + int(c)) if c.isdigit() else c for c in METADATA)


@pytest.mark.parametrize(
    ("url", "shown", "host", "port"),
    [
        ("https://api.example.com/v1", "https://api.example.com/v1", "api.example.com", 443),
        ("HTTPS://API.Example.com:443/V1?a=B#c", "https://api.example.com/V1?a=B#c", "api.example.com", 443),
        ("http://model:8080", "http://model:8080", "model", 8080),
        ("http://model.:00080/", "http://model/", "model", 80),
        ("https://my_model.example:80/", "https://my_model.example:80/", "my_model.example", 80),
        ("http://192.0.2.1:1/", "http://192.0.2.1:1/", "192.0.2.1", 1),
        ("http://[2001:DB8:0:0::1]:65535/", "http://[2001:db8::1]:65535/", "2001:db8::1", 65535),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443),
    ],
)
def test_a_url_has_one_canonical_form(url: str, shown: str, host: str, port: int) -> None:
    place = Place.of(url)
    assert (place.url, place.host, place.port) == (shown, host, port)
    assert Place.of(place.url) == place


@for_each(
    "host",
    [
        DIGITS,
        FULL_WIDTH,
        "169\u3002254\u3002169\u3002254",
        "169.254.169.2\u00ad54",
        "169.254.169.254\u200b",
        "b\u00fccher.example",
        "169.254.169.%32%35%34",
        "169.254.43518",
        "169.254.169.254.",
        "2852039166",
        "0xa9fea9fe",
        "0xA9.254.169.0xfe",
        "0251.0376.0251.0376",
        "169.254.169.0254",
        "0x",
        "127.1",
        "1.2.3.4.5",
        "a.1",
        "[::1%25eth0]",
        "[fe80::1%eth0]",
        "[169.254.169.254]",
        "[::1",
        "::1",
        "[]",
        "",
        ".",
        "a..b",
        ".a",
        "-a.example",
        "a-.example",
        "a" * 64,
        ".".join(["a" * 63] * 4) + ".aa",
        "user@a.example",
        "user:pw@a.example",
        "a.example\\@169.254.169.254",
        "a.example\\.b",
        "a.example:80@169.254.169.254",
        "a.example:port",
        "a.example:0",
        "a.example:65536",
        "a.example:",
        "a.example:\u0661",
        "a.example:80:80",
        "a.example :80",
        "a\t.example",
        "a.ex\nample",
        "a\x00.example",
        "a,b.example",
        "a;b",
        "a*",
    ],
)
def test_hosts_that_clients_might_read_in_different_ways_are_refused(host: str) -> None:
    for url in (f"http://{host}/v1", f"https://{host}"):
        with pytest.raises(ValueError, match=r"^the URL"):
            Place.of(url)
        assert Destinations().why_not(url, "shop") is not None


@pytest.mark.parametrize("url", ["", "ftp://a/", "//a/", "http:/a", "http:a", " http://a/", "javascript://a/"])
def test_what_is_no_http_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"^the URL"):
        Place.of(url)


@pytest.mark.parametrize(("length", "fits"), [(62, True), (63, True), (64, False)])
def test_a_label_has_at_most_63_letters(length: int, fits: bool) -> None:
    assert (Destinations().why_not(f"http://{'a' * length}.example/", "shop") is None) is fits


@pytest.mark.parametrize(("length", "fits"), [(252, True), (253, True), (254, False)])
def test_a_name_has_at_most_253_letters(length: int, fits: bool) -> None:
    name = ".".join(["a" * 49] * 5)[:length] + "." + "b" * (length - 250)
    assert len(name) == length
    assert (Destinations().why_not(f"http://{name}/", "shop") is None) is fits


ODD = st.sampled_from(
    [
        "%32",
        "%00",
        "\\",
        "@",
        ":",
        "[",
        "]",
        "#",
        "?",
        "\u3002",
        "\uff0e",
        "\u00ad",
        "\u200b",
        "\u2488",
        "\uff0f",
        "0x7f",
    ]
)
PIECES = st.one_of(
    st.sampled_from(["169", "254", "127", "0", "1", "010", "example", "svc", "shop", "cluster", "local", "xn--a"]),
    st.sampled_from([DIGITS[:3], FULL_WIDTH[:3], "\u0661", "\u00b2", "localhost", METADATA, "::1", "::ffff:a9fe:a9fe"]),
    ODD,
    st.text(min_size=1, max_size=3),
)
HOSTS = st.lists(PIECES, min_size=1, max_size=6).flatmap(lambda p: st.sampled_from([".".join(p), "".join(p)]))
URLS = st.builds(
    lambda scheme, user, host, port, rest: f"{scheme}://{user}{host}{port}{rest}",
    st.sampled_from(["http", "https", "HTTP"]),
    st.sampled_from(["", "", "", "u@", "u:p@", "a.example@"]),
    st.one_of(
        HOSTS, HOSTS.map(lambda h: f"[{h}]"), st.ip_addresses().map(str), st.ip_addresses(v=6).map(lambda a: f"[{a}]")
    ),
    st.sampled_from(["", "", ":80", ":8080", ":", ":0", ":99999", ":8 0"]),
    st.sampled_from(["", "/", "/v1", "/a%2Fb?x=1", "/\u00e9", "/a\\b", "?q=@evil", "#@evil", "//evil/", "/../@x"]),
)


def addressed(url: str) -> list[tuple[str, str, int | None]]:
    """Scheme, host and port that the parsers of aiohttp, httpx2 and httpx connect to."""
    read = yarl.URL(url)
    found = [(read.scheme, read.raw_host or "", read.port)]
    for parsed in (httpx2.URL(url), httpx.URL(url)):
        port = parsed.port or {"http": 80, "https": 443}[parsed.scheme]
        found.append((parsed.scheme, parsed.raw_host.decode("ascii"), port))
    return found


@given(URLS)
@example(f"http://{DIGITS}/latest/meta-data/")
@example(f"http://{FULL_WIDTH}/latest/meta-data/")
@example("http://127.0.0.1\\@a.example/")
@example("http://[::ffff:127.0.0.1]/")
@example("http://[64:ff9b::a9fe:a9fe]:80/")
def test_every_client_goes_where_the_judge_looked(url: str) -> None:
    try:
        place = Place.of(url)
    except ValueError:
        return
    for scheme, host, port in addressed(place.url):
        assert (scheme, host, port) == (place.scheme, place.host, place.port)
    # What a literal is connected to was judged, since nothing is looked up for it.
    if place.address is not None and POD.why_not(url, "shop") is None:
        assert place.address.is_global


@given(URLS)
def test_what_is_allowed_outside_a_pod_never_is_link_local(url: str) -> None:
    if Destinations().why_not(url, "shop") is None:
        assert not (address := Place.of(url).address) or not address.is_link_local
