"""A Git host for tests: real repositories, made and served by the program `git`, behind HTTPS on loopback."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import os
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class GitHost:
    """Serves the repositories below a folder; `answers` replaces the answer to a path."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = 0
        self.asked: list[str] = []
        self.answers: dict[str, Handler] = {}
        self.certificate = root / "tls.crt"
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> GitHost:
        key = self.root / "tls.key"
        _certificate(self.certificate, key)
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(self.certificate, key)
        app = web.Application(client_max_size=1 << 20)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=tls).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    @property
    def name(self) -> str:
        """The host as the administrator's list has it."""
        return f"localhost:{self.port}"

    def url(self, repository: str = "cases.git") -> str:
        return f"https://localhost:{self.port}/{repository}"

    def trust(self) -> ssl.SSLContext:
        """The TLS context of a client that trusts this host only."""
        return ssl.create_default_context(cafile=str(self.certificate))

    def repository(
        self, files: dict[str, bytes | str], name: str = "cases.git", *, filters: bool = True, form: str = "sha1"
    ) -> str:
        """Makes a repository with one more commit than it had, or a new one; the id of the commit."""
        bare, work = self.root / name, self.root / f"work-{name}"
        if not bare.exists():
            git(self.root, "init", "-q", "--bare", f"--object-format={form}", str(bare))
            git(bare, "config", "uploadpack.allowFilter", str(filters).lower())
            git(self.root, "init", "-q", f"--object-format={form}", str(work))
            git(work, "remote", "add", "origin", str(bare))
        for path, content in files.items():
            file = work / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        git(work, "add", "-A")
        git(work, "commit", "-q", "-m", "cases")
        git(work, "push", "-q", "origin", "HEAD:main")
        return git(work, "rev-parse", "HEAD").strip()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path_qs}")
        if (answer := self.answers.get(request.path)) is not None:
            return await answer(request)
        return await self.served(request, request.path, await request.read())

    async def served(self, request: web.Request, path: str, body: bytes) -> web.StreamResponse:
        """What git answers to a request with this path and body."""
        process = await asyncio.create_subprocess_exec(
            "git",
            "http-backend",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
                "PATH_INFO": path,
                "QUERY_STRING": request.query_string,
                "REQUEST_METHOD": request.method,
                "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            },
        )
        said, _ = await process.communicate(body)
        head, _, content = said.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(headers.pop("Status", "200").split()[0])
        return web.Response(status=status, headers=headers, body=content)


def git(folder: Path, *arguments: str) -> str:
    """Runs git, independent of the configuration of the machine; its output."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.com",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.com",
    }
    done = subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout


def _certificate(certificate: Path, key: Path) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
