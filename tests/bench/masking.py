"""How fast texts are masked, with all groups on.

Processor time of one core and not wall time, so that what else the machine does is not in the figures; the best of a
few rounds. Hostile texts are those that a scanner of this kind could be slow on. What the machine itself gives in that
minute is in the figures too: one bare pass of RE2 over the same text.
"""

import asyncio
import base64
import json
import random
import time

from tests.bench.figures import Figure, Result, best_cpu

from tarsy.masking import MOST_ON_LOOP, CustomPattern, Masker, build_masker, default_masker
from tarsy.masking.engine import Regex
from tarsy.masking.masker import _built_in

SIZE = 1_000_000
_LABELS = {"app.kubernetes.io/name": "payments", "pod-template-hash": "7d4b9c6f5d"}
_IMAGE = "registry.example.com/payments/gateway@sha256:" + "5b161f051d017e55d358435f295f5e9a" * 2
_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "payments-7d4b9c6f5d-x2x4q", "labels": _LABELS, "uid": "3f8a1c52-9d7e-4b6a-8c1d-2e5f7a9b"},
    "spec": {"containers": [{"name": "gateway", "image": _IMAGE, "env": [{"name": "MODE", "value": "fast"}]}]},
    "status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "reason": "ContainersReady"}],
    },
}


def measure(quick: bool) -> Result:
    """Megabytes a second for clean, mixed and hostile text."""
    size, rounds = (50_000, 1) if quick else (SIZE, 3)
    masker = build_masker(["all"])
    figures = [
        Figure("building a masker", best_cpu(_built, rounds) * 1000, "ms"),
        Figure("one pass of RE2 over clean logs", _one_pass(_filled(_logs(), size).encode(), rounds), "MB/s"),
        Figure("mixed, masked as by default", _speed(default_masker(), _filled(_mixed(), size), rounds), "MB/s"),
    ]
    for name, (text, aim) in {"clean logs": (_logs(), "150"), "mixed": (_mixed(), "50")}.items():
        figures.append(Figure(name, _speed(masker, _filled(text, size), rounds), "MB/s", aim))
    for name, text in _hostile().items():
        figures.append(Figure(f"hostile: {name}", _speed(masker, _filled(text, size), min(rounds, 2)), "MB/s", "10"))
    slowest = min((figure for figure in figures if figure.aim == "10"), key=lambda figure: figure.value)
    figures.append(Figure(f"slowest input ({slowest.name})", slowest.value, "MB/s", "10"))
    figures.append(_on_the_loop(100))
    custom = build_masker([], custom=[CustomPattern("nested", "(a+)+$", "-"), CustomPattern("far", "(.*a){20}b", "-")])
    figures.append(Figure("hostile custom patterns", _speed(custom, _filled("a" * 99 + "!", size), 1), "MB/s", "10"))
    return Result(f"{size:,} bytes a text, one core, all groups", figures)


async def run(quick: bool) -> Result:
    """Measures in a thread of its own."""
    return await asyncio.to_thread(measure, quick)


def _built() -> Masker:
    """Builds a masker that shares nothing with those before it."""
    _built_in.cache_clear()
    return build_masker(["all"])


def inputs() -> dict[str, str]:
    """Returns what is measured, by name: a piece of each text, or all of it."""
    return {"clean logs": _logs(), "mixed": _mixed(), **_hostile()}


def _speed(masker: Masker, text: str, rounds: int) -> float:
    return len(text.encode()) / 1e6 / best_cpu(lambda: masker.mask(text), rounds)


def _one_pass(text: bytes, rounds: int) -> float:
    regex = Regex(rb"(?i)nothing[ ]of[ ]this", capture=False)
    return len(text) / 1e6 / best_cpu(lambda: regex.search(text), rounds)


def _on_the_loop(count: int) -> Figure:
    """Measures the longest texts that are masked on the event loop: random ones, the slowest while RE2 has met few."""
    _built_in.cache_clear()
    masker, drawn, took = build_masker(["all"]), random.Random(8), []
    masker.compile()
    for _ in range(count):
        text = "".join(chr(drawn.randrange(32, 127)) for _ in range(4 * MOST_ON_LOOP))
        begun = time.thread_time()
        masker.mask(text)
        took.append((time.thread_time() - begun) * 1000)
    name = f"on the event loop: {4 * MOST_ON_LOOP} random characters, the longest of {count}"
    return Figure(name, max(took), "ms", "5")


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
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": [_POD, _POD, secret, _POD]}, indent=2)
    logs = "".join(_logs().splitlines(keepends=True)[:18])
    return f"{logs}---\n{document}---\n{items}\n{failures}{json.dumps(_POD)}\n"


def _hostile() -> dict[str, str]:
    drawn = random.Random(7)
    lines = "\n".join(base64.b64encode(drawn.randbytes(57)).decode() for _ in range(SIZE // 77))
    return {
        "lines of base64": lines,
        "one line of random base64": lines.replace("\n", ""),
        "random ASCII": "".join(chr(drawn.randrange(32, 127)) for _ in range(SIZE)),
        "one line of JSON": json.dumps([_POD] * 2_000),
        "JSON in JSON": json.dumps({"log": json.dumps([_POD] * 1_000)}),
        "equals signs": "=",
        "many pairs": "a=b&c=d;e=f\n",
        "colours of a terminal": "\x1b[31mERROR\x1b[0m \x1b[1mpod\x1b[0m failed\n",
        "percent-encoded": "".join(f"%{byte:02X}" for byte in b"pod web-1 is not ready "),
        "percent-encoded passwords": "a=1&password%3Dhunter22&b=2\n",
        "unicode": "Überprüfung 日本語 под не готов 🚀\n",
        "invisible characters": "a\u200bb\u00a0c\n",
        "full width": "\uff50\uff41\uff53\uff53\n",
        "deep YAML": "".join(f"{'  ' * (n % 60)}key{n}:\n" for n in range(5_000)),
        "authorizations": f"authorization: Bearer {'aB3dE5gH' * 3}1\n",
        "environments": "- name: DB_PASSWORD\n  value: hunter22\n",
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
        "backslashes after a password": "password=a" + "\\" * 100_000 + "\n",
        "escaped breaks between lines of a key": "aB3d" * 16 + "\\n" * 40_000 + "aB3d" * 16 + "\naB3daB3daB3d\n",
        "at signs in a URL": "https://a:b@" + "a@" * 60_000 + "x\n",
        "blanks in a Secret": "kind: Secret\ndata:\n  a: b" + " " * 200_000 + "x\n",
        "short lines with a password, split by invisible characters": "pass\u200bword=hunter22\n",
        "URLs with a password": "https://bob:hunter22@example.com/x\n",
        "unclosed quotes": 'password: "a',
        "addresses": "bob@example.com ",
        "entries of one Secret": "kind: Secret\ndata:\n" + "  key: dmFsdWU=\n" * (SIZE // 16),
    }
