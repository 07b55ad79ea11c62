"""A Postgres outside, by the Secret that `samples/fill-in/database.yaml` shows: its certificate is verified.

The file that pods have at a fixed place is, here, one of the test's own.
"""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from embedded_kubeapi.pki import Authority
from integration.manifests.conftest import MANIFESTS, documents
from tarsy.store.database import open_pool
from tarsy.store.errors import StoreError
from tarsy_dev.postgres import LocalPostgres
from tarsy_dev.postgres.binaries import server_account


@dataclass(frozen=True, slots=True)
class Server:
    """A Postgres with a certificate for localhost; `ca` is a file with its authority, `other` with another's."""

    dsn: str
    ca: Path
    other: Path

    def url(self, ca: Path, host: str = "localhost") -> str:
        """The sample's url, for this server."""
        (secret,) = documents((MANIFESTS / "samples" / "fill-in" / "database.yaml").read_text())
        query = secret["stringData"]["url"].partition("?")[2].replace("/etc/tarsy/database/ca.crt", str(ca))
        return f"{self.dsn.partition('?')[0].replace('127.0.0.1', host)}?{query}"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    account = server_account()
    with tempfile.TemporaryDirectory(prefix="tarsy-tls-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # as root, Postgres is another user
        authority = Authority("database")
        pair = authority.issue("postgres", names=("localhost",))
        for file, content in (("tls.crt", pair.certificate), ("tls.key", pair.key)):
            path = folder / file
            path.touch(mode=0o600)
            path.write_bytes(content)
            if account.switch:
                os.chown(path, account.uid, account.gid)
        files = {}
        for file, ca in (("ca.crt", authority), ("other.crt", Authority("other"))):
            files[file] = folder / file
            files[file].write_bytes(ca.certificate)
        settings = {"ssl": "on", "ssl_cert_file": str(folder / "tls.crt"), "ssl_key_file": str(folder / "tls.key")}
        with LocalPostgres(fsync=False, settings=settings, environ={}) as postgres:
            yield Server(postgres.dsn, files["ca.crt"], files["other.crt"])


async def test_a_server_whose_certificate_names_it_is_spoken_to_over_tls(server: Server) -> None:
    pool = await open_pool(server.url(server.ca))
    try:
        assert await pool.fetchval("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") is True
    finally:
        await pool.close()


async def test_a_server_of_another_authority_is_refused(server: Server) -> None:
    with pytest.raises(StoreError, match="certificate"):
        await open_pool(server.url(server.other))


async def test_a_server_whose_certificate_names_another_is_refused(server: Server) -> None:
    with pytest.raises(StoreError, match="certificate"):
        await open_pool(server.url(server.ca, host="127.0.0.1"))


async def test_without_an_authority_nothing_is_spoken_to(server: Server, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="certificate"):
        await open_pool(server.url(tmp_path / "none.crt"))
