"""Tests that the address of Postgres on another machine must state whether the connection is encrypted."""

import logging

import pytest

from tarsy.store.address import check_address
from tarsy.store.database import open_pool
from tarsy.store.errors import StoreError
from tarsy.stream.listener import Listener

FAR = "postgresql://tarsy:hunter2@db.example:5432/tarsy"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGSSLMODE", "PGHOST"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full", "verify_full"])
def test_what_encrypts_is_taken(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    check_address(f"{FAR}?sslmode={mode}")
    assert not caplog.records


@pytest.mark.parametrize("mode", ["allow", "prefer", "", "nonsense"])
def test_what_leaves_it_open_is_refused_with_the_remedy_and_without_the_password(mode: str) -> None:
    with pytest.raises(StoreError) as raised:
        check_address(f"{FAR}?sslmode={mode}")
    said = str(raised.value)
    assert said.startswith("The address of Postgres at db.example contains ")
    assert "?sslmode=verify-full&sslrootcert=FILE" in said and "--database-url" in said and "hunter2" not in said


def test_no_mode_is_refused_for_the_pool_and_for_listening() -> None:
    with pytest.raises(StoreError, match="contains no sslmode"):
        check_address(FAR)
    with pytest.raises(StoreError, match="contains no sslmode"):
        Listener(FAR, ("c",))


async def test_nothing_is_connected_to_where_it_is_open() -> None:
    with pytest.raises(StoreError, match="contains no sslmode"):
        await open_pool("postgresql://tarsy@192.0.2.1:1/tarsy")


def test_plain_text_is_taken_where_the_address_says_it_and_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        check_address(f"{FAR}?sslmode=disable")
    assert "Postgres at db.example is not encrypted" in caplog.text and "hunter2" not in caplog.text


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://u@localhost/tarsy",
        "postgresql://u:p@127.0.0.1:5432/tarsy",
        "postgresql://u@127.0.0.1,localhost:1/tarsy",
        "postgresql://u@[::1]:5432/tarsy",
        "postgresql:///tarsy?host=/run/postgresql",
        "postgresql://u@%2Frun%2Fpostgresql/tarsy",
        "postgresql:///tarsy",
    ],
)
@pytest.mark.parametrize("mode", ["", "sslmode=disable"])
def test_on_this_machine_nothing_need_be_said(dsn: str, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    check_address(dsn + ("&" if "?" in dsn else "?") + mode if mode else dsn)
    assert not caplog.records


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://u@127.0.0.1,db.example/tarsy",
        "postgresql:///tarsy?host=db.example",
        "postgresql://u@10.0.0.1/tarsy",
        "postgresql://u@[fd00::1]/tarsy",
        "postgresql://u@localhost.example/tarsy",
        "postgresql:///tarsy?service=production",
    ],
)
def test_one_host_elsewhere_is_enough(dsn: str) -> None:
    with pytest.raises(StoreError, match="contains no sslmode"):
        check_address(dsn)


def test_the_environment_counts_as_asyncpg_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "db.example")
    with pytest.raises(StoreError, match="contains no sslmode"):
        check_address("postgresql:///tarsy")
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    check_address("postgresql:///tarsy")
    with pytest.raises(StoreError, match="contains sslmode=prefer"):
        check_address(f"{FAR}?sslmode=prefer")
