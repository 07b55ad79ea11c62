"""Writes to the API server per investigation of a two-stage chain.

Counted by the API server itself: the growth of `apiserver_request_total` on its /metrics for verbs that write, over the
whole time from the first alert to the last published status. Left out: Leases (they go with time, not with
investigations), reviews (they store nothing), and the alerts that the benchmark creates itself.
"""

import re
import ssl
from collections import Counter
from collections.abc import Mapping

from tests.bench.bed import AGENT, Bed, loop_script
from tests.bench.figures import Figure, Result

WRITING = {"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION", "CREATE", "UPDATE"}
CALLS, TOKENS, FIRST_MS, PER_MS = 3, 100, 300.0, 5.0
AIM = "at most 8"
_LINE = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
Write = tuple[str, str]  # verb, and resource with group and subresource


async def run(bed: Bed, quick: bool) -> Result:
    """Counts over investigations that run side by side, with the pace of a real model."""
    count = 2 if quick else 20
    text = [{"tokens": TOKENS}]
    script = loop_script(CALLS, tokens=TOKENS, first_ms=FIRST_MS, per_ms=PER_MS, executive_summary=text)
    async with bed.tenant("api-writes", script) as tenant:
        await tenant.chain([AGENT], [AGENT], summary=True)
        before = await _writes(bed)
        await tenant.create_many("run", count)
        rows = await tenant.settled("run", count)
        grown = await _writes(bed) - before
    grown[("POST", "alerts.tarsy.dev")] -= count
    seconds = max(row["finished_at"] for row in rows) - min(row["accepted_at"] for row in rows)
    leases = {key: n for key, n in grown.items() if key[1].startswith("leases.")}
    reviews = {key: n for key, n in grown.items() if "review" in key[1]}
    writes = {key: n for key, n in grown.items() if key not in leases and key not in reviews}
    how = (
        f"{count} investigations side by side ({seconds.total_seconds():.1f} s), two stages of one agent, {CALLS} "
        f"model calls each, executive summary, {FIRST_MS:g} ms to the first token, {PER_MS:g} ms a token. Growth of "
        "apiserver_request_total for writing verbs, without Leases, reviews and the creation of the alerts."
    )
    figures = [Figure("writes per investigation", sum(writes.values()) / count, "writes", AIM, _named(writes))]
    figures += [Figure(f"  {verb} {what}", n / count, "writes") for (verb, what), n in sorted(writes.items()) if n]
    figures.append(Figure("reviews per investigation (store nothing)", sum(reviews.values()) / count, "requests"))
    figures.append(Figure("Lease writes in all of the time", float(sum(leases.values())), "writes"))
    return Result(how, figures)


async def _writes(bed: Bed) -> "Counter[Write]":
    """Writing requests that the API server has answered so far."""
    way = await bed.stack.client.connection()
    tls = ssl.create_default_context(cafile=way.ca_file)
    if way.certificate_file:
        tls.load_cert_chain(way.certificate_file, way.key_file)
    token = await bed.stack.client.token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with bed.http.get(f"{way.server}/metrics", ssl=tls, headers=headers, raise_for_status=True) as answer:
        text = await answer.text()
    found: Counter[Write] = Counter()
    for line in _LINE.finditer(text):
        labels = dict(_LABEL.findall(line.group(1)))
        if labels.get("verb") in WRITING and labels.get("code", "").startswith("2"):
            found[(labels["verb"], _what(labels))] += round(float(line.group(2)))
    return found


def _what(labels: Mapping[str, str]) -> str:
    name = ".".join(part for part in (labels.get("resource", ""), labels.get("group", "")) if part)
    return f"{name}/{labels['subresource']}" if labels.get("subresource") else name


def _named(writes: Mapping[Write, int]) -> dict[str, int]:
    return {f"{verb} {what}": n for (verb, what), n in sorted(writes.items())}
