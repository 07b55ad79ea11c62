"""How fast texts are masked, with all groups on.

Processor time of one core and not wall time, so that what else the machine does is not in the figures; the best of a
few rounds. Hostile texts are those that a scanner of this kind could be slow on. What the machine itself gives in that
minute is in the figures too: one bare pass of RE2 over the same text.
"""

import asyncio
import json
import random

from tests.bench.figures import Figure, Result, best_cpu

from tarsy.masking import CustomPattern, Masker, build_masker, default_masker
from tarsy.masking.engine import Regex

SIZE = 1_000_000


def measure(quick: bool) -> Result:
    """Megabytes a second for clean, mixed and hostile text."""
    size, rounds = (50_000, 1) if quick else (SIZE, 3)
    masker = build_masker(["all"])
    figures = [
        Figure("building a masker", best_cpu(lambda: build_masker(["all"]), rounds) * 1000, "ms"),
        Figure("one pass of RE2 over clean logs", _one_pass(_filled(_logs(), size).encode(), rounds), "MB/s"),
        Figure("mixed, masked as by default", _speed(default_masker(), _filled(_mixed(), size), rounds), "MB/s"),
    ]
    for name, (text, aim) in {"clean logs": (_logs(), "150"), "mixed": (_mixed(), "50")}.items():
        figures.append(Figure(name, _speed(masker, _filled(text, size), rounds), "MB/s", aim))
    for name, text in _hostile().items():
        figures.append(Figure(f"hostile: {name}", _speed(masker, _filled(text, size), min(rounds, 2)), "MB/s", "10"))
    custom = build_masker([], custom=[CustomPattern("nested", "(a+)+$", "-"), CustomPattern("far", "(.*a){20}b", "-")])
    figures.append(Figure("hostile custom patterns", _speed(custom, _filled("a" * 99 + "!", size), 1), "MB/s", "10"))
    return Result(f"{size:,} bytes a text, one core, all groups", figures)


async def run(quick: bool) -> Result:
    """Measures in a thread of its own."""
    return await asyncio.to_thread(measure, quick)


def _speed(masker: Masker, text: str, rounds: int) -> float:
    return len(text.encode()) / 1e6 / best_cpu(lambda: masker.mask(text), rounds)


def _one_pass(text: bytes, rounds: int) -> float:
    regex = Regex(rb"(?i)nothing[ ]of[ ]this", capture=False)
    return len(text) / 1e6 / best_cpu(lambda: regex.search(text), rounds)


def _filled(text: str, size: int) -> str:
    return text if len(text) > size else text * (size // len(text))


def _logs() -> str:
    """A hundred lines as controllers write them."""
    drawn = random.Random(6)
    lines = []
    for number in range(100):
        pod = f"web-{drawn.getrandbits(32):08x}-{drawn.choice('bcdfg')}{number:04d}"
        lines.append(
            f"2026-05-01T10:{number % 60:02d}:00.{number:03d}Z INFO reconcile.go:214 controller=deployment "
            f'namespace=production pod={pod} msg="rolled out revision {number}" took={number}ms\n'
        )
    return "".join(lines)


def _mixed() -> str:
    """Logs, YAML and JSON with a Secret, a token and some passwords: 2 secrets in a kilobyte."""
    labels = {"app.kubernetes.io/name": "payments", "pod-template-hash": "7d4b9c6f5d"}
    image = "registry.example.com/payments/gateway@sha256:" + "5b161f051d017e55d358435f295f5e9a" * 2
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "payments-7d4b9c6f5d-x2x4q", "labels": labels, "uid": "3f8a1c52-9d7e-4b6a-8c1d-2e5f7a9b"},
        "spec": {"containers": [{"name": "gateway", "image": image, "env": [{"name": "MODE", "value": "fast"}]}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "reason": "ContainersReady"}],
        },
    }
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "data": {"password": "aHVudGVyMjI="}}
    document = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  labels:\n    app: payments\n"
        "data:\n  log.level: information\n  endpoint: https://payments.example.com/api/v1\n"
    )
    failures = "".join(
        f"2026-05-01T10:00:{second:02d}Z WARN login failed user=bob password=hunter{second:02d} from=10.0.0.{second}\n"
        f"2026-05-01T10:00:{second:02d}Z DEBUG request sent authorization: Bearer {'aB3dE5gH' * 5}{second:02d}\n"
        for second in range(4)
    )
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod, pod, secret, pod]}, indent=2)
    logs = "".join(_logs().splitlines(keepends=True)[:18])
    return f"{logs}---\n{document}---\n{items}\n{failures}{json.dumps(pod)}\n"


def _hostile() -> dict[str, str]:
    return {
        "one line of one letter": "a" * SIZE,
        "one line of base64": "aB3+" * (SIZE // 4),
        "quotes": '"',
        "backslashes and quotes": '\\"',
        "kind: Secret": "kind: Secret\n",
        "kind: Secret and data": "kind: Secret\ndata:\n",
        "the same in JSON, nested": '{"kind":"Secret","data":{',
        "deep nesting": '{"a":' * 150_000 + '"kind":"Secret","data":{"a":"b"}' + "}" * 150_000,
        "deeper and deeper YAML": "".join(f"{' ' * n}kind: Secret\n{' ' * n}data:\n" for n in range(390)),
        "documents in strings": '"kind: Secret\\ndata:\\n  a: b"\n',
        "PEM begins": "-----BEGIN RSA PRIVATE KEY-----\n",
        "unfinished JWTs": "eyJhbGci.",
        "passwords": "password=hunter22\n",
        "passwords that are all different": "".join(f"user {n} password=hunter{n}\n" for n in range(SIZE // 30)),
        "what only looks like passwords": "password=none\n",
        "unclosed quotes": 'password: "a',
        "addresses": "bob@example.com ",
        "entries of one Secret": "kind: Secret\ndata:\n" + "  key: dmFsdWU=\n" * (SIZE // 16),
    }
