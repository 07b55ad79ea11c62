"""At a limit an object is good, one beyond it is not."""

import pytest

from for_each import for_each
from tarsy.resources.brief_names import MAX_BRIEF, in_brief
from tarsy.resources.parse import InvalidResource, parse_object

REF = {"name": "x", "key": "k"}


def document(kind, spec, name):
    return {"apiVersion": "tarsy.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def alert(**spec):
    return document("Alert", {"alertType": "a", "data": "x", **spec}, "a")


def investigation(**spec):
    return document("Investigation", {"alertRef": {"name": "a"}, **spec}, "i")


def chain(agents=1, **stage):
    names = [{"name": f"agent-{number}"} for number in range(agents)]
    return document("Chain", {"stages": [{"name": "s", "agents": names, **stage}]}, "c")


def stages(count):
    return document(
        "Chain", {"stages": [{"name": f"s-{number}", "agents": [{"name": "a"}]} for number in range(count)]}, "c"
    )


def agent(**spec):
    return document("Agent", spec, "a")


def server(name="m", **spec):
    return document("MCPServer", {"transport": {"type": "http", "http": {"url": "http://x"}}, **spec}, name)


def reached(type="http", **http):
    return server(transport={"type": type, "http": {"url": "https://x", **http}})


def command(**stdio):
    return server(transport={"type": "stdio", "stdio": {"command": "x", **stdio}})


def chain_with(**spec):
    return document("Chain", {"stages": [{"name": "s", "agents": [{"name": "a"}]}], **spec}, "c")


def defaults(**spec):
    return document("InvestigationDefaults", spec, "default")


def skill(name="pods", **spec):
    return document("Skill", {"description": "d", "body": "x", **spec}, name)


def rates(**change):
    return {"inputPerMillion": 1, "outputPerMillion": 2.5} | change


def fallback(count, **entry):
    return [{"llmProvider": f"p-{number}", **entry} for number in range(count)]


PROVIDER_LIMITS = {"maxConcurrent": 10_000, "requestsPerMinute": 1_000_000, "tokensPerMinute": 1_000_000_000}
LOOP_LIMITS = {
    "consecutiveTimeouts": (1, 100),
    "emptyAnswers": (0, 100),
    "repeatSeconds": (0, 86_400),
    "repeatsInARow": (1, 100),
    "contextTokens": (1024, 100_000_000),
    "findingRepairs": (0, 1),
}
OWN = {"name": "a", "pattern": "b", "replacement": "-"}
MASKING_LIMITS = (
    *(
        ({field: [f"n{n}" for n in range(most)]}, {field: [f"n{n}" for n in range(most + 1)]})
        for field, most in (("patternGroups", 16), ("patterns", 32))
    ),
    ({"patterns": ["a" * 63]}, {"patterns": ["a" * 64]}),
    ({"patternGroups": ["a", "b"]}, {"patternGroups": ["a", "a"]}),
    ({"enabled": False}, {"enabled": "no"}),
    *(
        ({"customPatterns": [OWN | {field: "a" * most}]}, {"customPatterns": [OWN | {field: "a" * (most + 1)}]})
        for field, most in (("name", 63), ("pattern", 1024), ("replacement", 256))
    ),
    *(
        ({"customPatterns": [OWN | {field: "a"}]}, {"customPatterns": [OWN | {field: ""}]})
        for field in ("name", "pattern", "replacement")
    ),
    (
        {"customPatterns": [OWN | {"name": f"n{n}"} for n in range(32)]},
        {"customPatterns": [OWN | {"name": f"n{n}"} for n in range(33)]},
    ),
    ({"customPatterns": [OWN, OWN | {"name": "b"}]}, {"customPatterns": [OWN, OWN]}),
)
AUTHOR = {"username": "alice"}
AUTHOR_LIMITS = (
    *(({field: "a" * most}, {field: "a" * (most + 1)}) for field, most in (("username", 1024), ("uid", 256))),
    ({"username": "a"}, {"username": ""}),
    ({"groups": [f"g{n}" for n in range(256)]}, {"groups": [f"g{n}" for n in range(257)]}),
    ({"groups": ["g" * 512]}, {"groups": ["g" * 513]}),
    ({"groups": ["g"]}, {"groups": [""]}),
)
TIMEOUTS = (
    "investigationSeconds",
    "iterationSeconds",
    "modelCallSeconds",
    "toolCallSeconds",
    "firstTokenSeconds",
    "stallSeconds",
)


def provider(**spec):
    return document("LLMProvider", {"type": "openai", "model": "m", **spec}, "p")


def vertex(**fields):
    spec = {"type": "vertexai", "apiKeySecretRef": {"name": "s", "key": "k"}, "vertexai": {"project": "p", **fields}}
    return provider(**spec)


def question(text):
    return document("ChatMessage", {"investigationRef": {"name": "i"}, "question": text}, "q")


def asked_by(author):
    return document("ChatMessage", {"investigationRef": {"name": "i"}, "question": "q", "author": author}, "q")


def selection(*names):
    return [{"name": name} for name in names]


@for_each(
    ("good", "bad"),
    [
        *(
            (make(loop={field: at}), make(loop={field: beyond}))
            for make in (chain_with, defaults)
            for field, (low, high) in LOOP_LIMITS.items()
            for at, beyond in ((low, low - 1), (high, high + 1))
        ),
        *(
            (provider(limits={field: at}), provider(limits={field: beyond}))
            for field, most in PROVIDER_LIMITS.items()
            for at, beyond in ((1, 0), (most, most + 1))
        ),
        *(
            (make(timeouts={field: at}), make(timeouts={field: beyond}))
            for make in (chain_with, defaults)
            for field in TIMEOUTS
            for at, beyond in ((1, 0), (86_400, 86_401))
        ),
        *(
            (make(budget={field: at}), make(budget={field: beyond}))
            for make in (chain_with, defaults, investigation)
            for field, at, beyond in (
                ("tokens", 1, 0),
                ("tokens", 10**12, 10**12 + 1),
                ("costUSD", 0.0001, 0),
                ("costUSD", 1_000_000, 1_000_000.01),
                ("toolCalls", 1, 0),
                ("toolCalls", 1_000_000, 1_000_001),
                ("minutes", 0.1, 0.09),
                ("minutes", 1440, 1441),
            )
        ),
        (skill("a" * 63), skill("a" * 65)),
        (skill("a" * 64), skill("a" * 65)),
        (skill(description="d" * 1023), skill(description="d" * 1025)),
        (skill(description="d" * 1024), skill(description="d" * 1025)),
        (skill(description="d"), skill(description="")),
        (skill(body="x" * 65_535), skill(body="x" * 65_537)),
        (skill(body="x" * 65_536), skill(body="x" * 65_537)),
        (skill(compatibility="c" * 500), skill(compatibility="c" * 501)),
        (skill(allowedTools=["a.b"]), skill(allowedTools=["a"])),
        (skill(allowedTools=["a.*"]), skill(allowedTools=["*.a"])),
        (agent(skills=[{"name": f"s{n}"} for n in range(32)]), agent(skills=[{"name": f"s{n}"} for n in range(33)])),
        *((make(fallback=fallback(8)), make(fallback=fallback(9))) for make in (chain, chain_with, defaults)),
        (chain_with(fallback=[]), chain_with(fallback=[{"strategy": "react"}])),
        (chain_with(fallback=fallback(1, strategy="react")), chain_with(fallback=fallback(1, strategy="single-call"))),
        (agent(nativeTools={"googleSearch": False}), agent(nativeTools={"googleSearch": "no"})),
        (agent(serviceAccountName="a" * 253), agent(serviceAccountName="a" * 254)),
        (agent(serviceAccountName="tarsy-agent"), agent(serviceAccountName="tarsy_agent")),
        (agent(serviceAccountName="a"), agent(serviceAccountName="")),
        (command(kubeconfig=True), command(kubeconfig="yes")),
        (agent(nativeTools={"urlContext": True}), agent(nativeTools={"webSearch": True})),
        *(
            (vertex(**{field: at}), vertex(**{field: beyond}))
            for field, at, beyond in (
                ("project", "example.com:shop-1", "Shop"),
                ("project", "p" * 128, "p" * 129),
                ("project", "1", ""),
                ("project", "p.", "../p"),
                ("location", "europe-west1", "europe/west1"),
                ("location", "l" * 63, "l" * 64),
                ("location", "l", ""),
                ("credentials", "Secret", "Pod"),
            )
        ),
        (provider(nativeTools={"codeExecution": True}), provider(nativeTools={"codeExecution": 1})),
        (provider(rates=rates()), provider(rates={"inputPerMillion": 1})),
        (provider(rates=rates(inputPerMillion=0)), provider(rates=rates(inputPerMillion=-0.01))),
        (provider(rates=rates(outputPerMillion=1_000_000)), provider(rates=rates(outputPerMillion=1_000_000.1))),
        (provider(rates=rates(cachedInputPerMillion=0)), provider(rates=rates(cachedInputPerMillion=-1))),
        *(
            (make(good), make(bad))
            for make in (
                lambda masking: server(masking=masking),
                lambda masking: defaults(alertMasking=masking),
                lambda masking: defaults(modelOutputMasking=masking),
            )
            for good, bad in MASKING_LIMITS
        ),
        *(
            (reached(**good), reached(**bad))
            for good, bad in (
                ({"bearerTokenSecretRef": REF}, {"bearerTokenSecretRef": {"name": "s"}}),
                (
                    {"bearerTokenSecretRef": {"name": "s", "key": "k" * 253}},
                    {"bearerTokenSecretRef": {"name": "s", "key": "k" * 254}},
                ),
                ({"tls": {"caFrom": {"secretKeyRef": REF}}}, {"tls": {}}),
                (
                    {"tls": {"caFrom": {"configMapKeyRef": {"name": "a" * 253, "key": "k"}}}},
                    {"tls": {"caFrom": {"configMapKeyRef": {"name": "a" * 254, "key": "k"}}}},
                ),
                ({"url": "https://x"}, {"url": "https://x", "tls": {"insecureSkipVerify": True}}),
                ({"tokenAudience": "a" * 256}, {"tokenAudience": "a" * 257}),
                ({"tokenAudience": "https://tools.example/mcp"}, {"tokenAudience": "two words"}),
                ({"tokenAudience": "a"}, {"tokenAudience": ""}),
            )
        ),
        (reached(type="sse"), reached(type="websocket")),
        (
            defaults(runbookHosts=[{"host": "wiki.example:8443"}]),
            defaults(runbookHosts=[{"host": "https://wiki.example"}]),
        ),
        (defaults(runbookHosts=[{"host": "git.example"}]), defaults(runbookHosts=[{"host": "git.example/path"}])),
        (
            defaults(runbookHosts=[{"host": f"h{number}"} for number in range(32)]),
            defaults(runbookHosts=[{"host": f"h{number}"} for number in range(33)]),
        ),
        (
            defaults(runbookHosts=[{"host": "a"}, {"host": "b", "tokenSecretRef": REF}]),
            defaults(runbookHosts=[{"host": "a"}, {"host": "a", "tokenSecretRef": REF}]),
        ),
        (alert(data="x" * 262_144), alert(data="x" * 262_145)),
        (alert(data="é" * 131_072), alert(data="é" * 131_072 + "x")),
        (alert(data="漢" * 87_381 + "x"), alert(data="漢" * 87_382)),
        (alert(data="x"), alert(data="")),
        (alert(alertType="a" * 253), alert(alertType="a" * 254)),
        (alert(alertType="Kube Pod: crash/loop_1.2"), alert(alertType="crash\nloop")),
        (alert(alertType="NodeDown"), alert(alertType=" NodeDown")),
        (alert(ttlSecondsAfterFinished=0), alert(ttlSecondsAfterFinished=-1)),
        (alert(ttlSecondsAfterFinished=31_536_000), alert(ttlSecondsAfterFinished=31_536_001)),
        (alert(incidentKey="k" * 253), alert(incidentKey="k" * 254)),
        (alert(chainRef={"name": "a" * 253}), alert(chainRef={"name": "a" * 254})),
        (alert(runbook={"inline": "r" * 32_768}), alert(runbook={"inline": "r" * 32_769})),
        (
            alert(mcpServers=selection(*(f"m-{number}" for number in range(32)))),
            alert(mcpServers=selection(*(f"m-{number}" for number in range(33)))),
        ),
        (alert(mcpServers=selection("m" * 40)), alert(mcpServers=selection("m" * 41))),
        (alert(mcpServers=[{"name": "m", "tools": ["t"]}]), alert(mcpServers=[{"name": "m", "tools": []}])),
        (investigation(ttlSecondsAfterFinished=0), investigation(ttlSecondsAfterFinished=-1)),
        (stages(1), stages(0)),
        (stages(20), stages(21)),
        (chain(agents=1), chain(agents=0)),
        (chain(agents=10), chain(agents=11)),
        (chain(replicas=1), chain(replicas=0)),
        (chain(replicas=10), chain(replicas=11)),
        (chain(agents=2, replicas=1), chain(agents=2, replicas=2)),
        (chain(maxIterations=200), chain(maxIterations=201)),
        (chain(maxIterations=1), chain(maxIterations=0)),
        (agent(instructions="i" * 32_768), agent(instructions="i" * 32_769)),
        (server("m" * 40), server("m" * 41)),
        (server("kubernetes-server"), server("kubernetes.server")),
        (server(timeouts={"callSeconds": 86_400}), server(timeouts={"callSeconds": 86_401})),
        (server(timeouts={"initSeconds": 1}), server(timeouts={"initSeconds": 0})),
        *(
            (server(summarization={field: at}), server(summarization={field: beyond}))
            for field, at, beyond in (
                ("thresholdTokens", 100, 99),
                ("thresholdTokens", 1_000_000, 1_000_001),
                ("summaryTokens", 50, 49),
                ("summaryTokens", 32_768, 32_769),
                ("enabled", False, "no"),
            )
        ),
        *(
            (make(summarization={"llmProvider": "p" * 253}), make(summarization={"llmProvider": "p" * 254}))
            for make in (chain_with, defaults)
        ),
        (provider(temperature=0), provider(temperature=-0.1)),
        (provider(temperature=2), provider(temperature=2.01)),
        (provider(apiKeySecretRef=REF), provider(apiKeySecretRef={"name": "x"})),
        (provider(baseURL="http://localhost:11434/v1"), provider(baseURL="http://")),
        (provider(contextWindow=1024), provider(contextWindow=1023)),
        *(
            (make(author=AUTHOR | at), make(author=AUTHOR | beyond))
            for make in (alert, investigation, asked_by)
            for at, beyond in AUTHOR_LIMITS
        ),
        (question("q" * 100_000), question("q" * 100_001)),
        (question("q"), question("")),
    ],
)
def test_object_at_a_limit_is_good_and_beyond_it_is_not(good, bad):
    parse_object(good)
    with pytest.raises(InvalidResource):
        parse_object(bad)


def test_defaults_of_the_api():
    week = 7 * 24 * 60 * 60
    assert parse_object(alert()).spec.ttl_seconds_after_finished == week
    run = parse_object(investigation()).spec
    assert (run.desired_state, run.ttl_seconds_after_finished) == ("Running", week)
    assert parse_object(chain()).spec.alert_tools == "Allowed"
    assert parse_object(chain()).spec.stages[0].replicas == 1
    timeouts = parse_object(server()).spec.timeouts
    assert (timeouts.init_seconds, timeouts.call_seconds) == (30, None)


NAMES = ["a" * 20, "b" * 20, "c" * 20]
"""Joined by commas they have 64 characters: what a column holds."""


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ([], None),
        (NAMES[:2], f"{NAMES[0]}, {NAMES[1]}"),
        (NAMES, ", ".join(NAMES)),
        ([*NAMES[:2], "c" * 21], f"{NAMES[0]}, {NAMES[1]}, +1"),
        ([*NAMES, "d"], f"{NAMES[0]}, {NAMES[1]}, +2"),
        (["e" * 64], "e" * 64),
        (["e" * 65], "e" * 63 + "…"),
        (["e" * 100, "f"], "e" * 59 + "…, +1"),
    ],
)
def test_alert_types_of_a_chain_fit_into_a_column(names, shown):
    assert in_brief(names) == shown
    assert shown is None or len(shown) <= MAX_BRIEF
