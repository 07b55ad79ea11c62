"""Parsing says everything that is wrong with an object at once, by field path, with the remedy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties import examples
from tarsy.resources.parse import FieldError, InvalidResource, parse_as, parse_object
from tarsy.resources.v1alpha1 import KINDS, Agent, Alert, Chain, Investigation


def obj(kind, spec, name="example", **more):
    return {
        "apiVersion": "tarsy.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "team"},
        "spec": spec,
        **more,
    }


def errors(kind, spec, **more):
    with pytest.raises(InvalidResource) as caught:
        parse_object(obj(kind, spec, **more))
    return {error.path: error.message for error in caught.value.errors}


def test_object_of_each_kind_becomes_its_model():
    alert = parse_object(obj("Alert", {"alertType": "KubePodCrashLooping", "data": "{}"}))
    assert isinstance(alert, Alert)
    assert (str(alert), alert.spec.alert_type) == ("Alert team/example", "KubePodCrashLooping")


def test_what_the_api_server_adds_is_read_or_ignored():
    document = obj("Agent", {"instructions": "look"})
    document["metadata"] |= {
        "uid": "1-2-3",
        "generation": 4,
        "resourceVersion": "99",
        "creationTimestamp": "2026-11-22T12:00:00Z",
        "managedFields": [{"manager": "kubectl"}],
        "labels": {"team": "sre"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u", "controller": True}],
    }
    agent = parse_as(Agent, document)
    assert (agent.metadata.uid, agent.metadata.generation, agent.metadata.labels) == ("1-2-3", 4, {"team": "sre"})
    assert agent.metadata.owner_references[0].uid == "u"
    assert agent.to_dict()["metadata"]["creationTimestamp"] == "2026-11-22T12:00:00Z"


def test_written_object_reads_back_the_same():
    document = obj(
        "Chain",
        {"alertTypes": ["a"], "stages": [{"name": "look", "agents": [{"name": "one", "maxIterations": 3}]}]},
    )
    chain = parse_as(Chain, document)
    assert parse_as(Chain, chain.to_dict()) == chain
    assert "status" not in chain.to_dict()
    assert chain.to_dict()["metadata"] == document["metadata"]


def test_all_errors_come_at_once_by_field_path():
    spec = {
        "stages": [
            {"name": "Look", "agents": [{"name": "ok"}, {"nmae": "typo"}]},
            {"name": "empty", "agents": []},
            {"name": "many", "agents": [{"name": "a"}, {"name": "b"}], "replicas": 2},
        ],
        "strategy": "guess",
        "maxIterations": 0,
        "allowedNamespaces": {"from": "Selector"},
    }
    found = errors("Chain", spec)
    assert set(found) == {
        "spec.stages[0].name",
        "spec.stages[0].agents[1].name",
        "spec.stages[0].agents[1].nmae",
        "spec.stages[1].agents",
        "spec.stages[2].replicas",
        "spec.strategy",
        "spec.maxIterations",
        "spec.allowedNamespaces.selector",
    }
    assert found["spec.stages[0].agents[1].name"] == "is required"
    assert found["spec.stages[0].agents[1].nmae"] == "is not a field of this kind; check its spelling"
    assert found["spec.stages[1].agents"] == "agents must name at least one agent, unless kind is Changes"
    assert "list the agents, or repeat one of them" in found["spec.stages[2].replicas"]
    assert found["spec.maxIterations"] == "must be at least 1"
    assert "'react'" in found["spec.strategy"]


def test_message_names_the_object_and_every_field():
    with pytest.raises(InvalidResource) as caught:
        parse_object(obj("Alert", {"data": "x", "dataFrm": {}}))
    assert str(caught.value) == (
        "Alert team/example is not valid: spec.alertType: is required; "
        "spec.dataFrm: is not a field of this kind; check its spelling"
    )


def test_several_broken_rules_of_one_object_are_all_told():
    found = errors("Alert", {"alertType": "a", "data": "", "dataFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}})
    assert set(found) == {"spec", "spec.data"}


@pytest.mark.parametrize(
    ("spec", "path", "remedy"),
    [
        ({}, "spec", "set exactly one of data"),
        ({"data": "x", "dataFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}, "spec", "set exactly one of data"),
        ({"data": " \n"}, "spec.data", "put the text of the alert there"),
        ({"data": ""}, "spec.data", "put the text of the alert there"),
        ({"data": "x" * 262_145}, "spec.data", "put larger data into a ConfigMap"),
        ({"data": "x", "runbook": {}}, "spec.runbook", "set exactly one of inline, configMapKeyRef, url and git"),
        ({"data": "x", "runbook": {"url": "file:///etc"}}, "spec.runbook.url", "begins with http:// or https://"),
        ({"data": 5}, "spec.data", "must be a string; put numbers and true or false in quotes"),
        ({"data": "x", "mcpServers": []}, "spec.mcpServers", "must not be empty"),
        ({"data": "x", "mcpServers": [{"name": "a"}, {"name": "a"}]}, "spec.mcpServers", "more than once: a"),
        (
            {"data": "x", "mcpServers": [{"name": "a.b"}]},
            "spec.mcpServers[0].name",
            "lower-case letters",
        ),
        ({"data": "x", "nativeTools": {"googleSearch": "maybe"}}, "spec.nativeTools.googleSearch", "true or false"),
    ],
)
def test_bad_alert_is_told_field_and_remedy(spec, path, remedy):
    assert remedy in errors("Alert", {"alertType": "a", **spec})[path]


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        ("MCPServer", {"transport": {"type": "stdio"}}, "spec.transport"),
        ("MCPServer", {"transport": {"type": "websocket"}}, "spec.transport.type"),
        ("MCPServer", {"transport": {"type": "sse"}}, "spec.transport"),
        (
            "MCPServer",
            {"transport": {"type": "stdio", "stdio": {"command": "x", "env": [{"name": "A"}]}}},
            "spec.transport.stdio.env[0]",
        ),
        ("LLMProvider", {"type": "telepathy", "model": "m"}, "spec.type"),
        ("LLMProvider", {"type": "openai", "model": "m", "baseURL": "localhost:8000"}, "spec.baseURL"),
        ("LLMProvider", {"type": "openai", "model": "m", "temperature": 2.1}, "spec.temperature"),
        ("LLMProvider", {"type": "openai", "model": "m", "backend": "sdk"}, "spec.backend"),
        ("Investigation", {}, "spec"),
        ("Investigation", {"alert": {"alertType": "a"}}, "spec.alert"),
        ("Investigation", {"alertRef": {"name": "a"}, "desiredState": "Paused"}, "spec.desiredState"),
        ("ChatMessage", {"investigationRef": {"name": "i"}}, "spec.question"),
        ("Chain", {"stages": [{"name": "s", "agents": [{"name": "a"}]}] * 2}, "spec.stages"),
    ],
)
def test_bad_object_is_told_the_field(kind, spec, path):
    assert path in errors(kind, spec)


@pytest.mark.parametrize(("kind", "name"), [("MCPServer", "my.server"), ("InvestigationDefaults", "other")])
def test_name_that_a_kind_does_not_allow_is_told(kind, name):
    spec = {"transport": {"type": "http", "http": {"url": "http://x"}}} if kind == "MCPServer" else {}
    assert "metadata.name" in errors(kind, spec, name=name)[""]


def test_python_names_of_fields_are_not_accepted():
    assert set(errors("Alert", {"alert_type": "a", "data": "x"})) == {"spec.alertType", "spec.alert_type"}


def test_values_are_never_repeated_since_they_may_be_secret():
    spec = {
        "transport": {
            "type": "http",
            "http": {"url": "hunter2", "headers": [{"name": "Authorization", "value": "hunter2\n"}]},
        }
    }
    with pytest.raises(InvalidResource) as caught:
        parse_object(obj("MCPServer", spec))
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("change", "path"),
    [({"kind": "Banana"}, "kind"), ({"apiVersion": "tarsy.dev/v1"}, "apiVersion"), ({"kind": None}, "kind")],
)
def test_object_of_another_kind_or_version_is_refused(change, path):
    with pytest.raises(InvalidResource) as caught:
        parse_object(obj("Alert", {"alertType": "a", "data": "x"}) | change)
    (error,) = caught.value.errors
    assert error.path == path


def test_parse_as_refuses_another_kind():
    with pytest.raises(InvalidResource, match="Alert team/example is not valid: kind: must be Chain"):
        parse_as(Chain, obj("Alert", {"alertType": "a", "data": "x"}))


def test_status_of_another_version_counts_as_empty():
    document = obj("Investigation", {"alertRef": {"name": "a"}}, status={"phase": "Dreaming", "attempt": 3})
    assert parse_as(Investigation, document).status.phase is None


def test_status_of_a_newer_version_is_read_as_far_as_it_is_known():
    document = obj("Investigation", {"alertRef": {"name": "a"}}, status={"phase": "Running", "mood": "good"})
    assert parse_as(Investigation, document).status.phase == "Running"


def test_unreadable_status_hides_no_error_of_the_spec():
    assert set(errors("Investigation", {}, status={"phase": "Dreaming"})) == {"spec"}


@pytest.mark.parametrize("junk", [{}, {"metadata": None}, {"kind": "Alert", "apiVersion": "tarsy.dev/v1alpha1"}])
def test_junk_is_refused_in_the_same_words(junk):
    with pytest.raises(InvalidResource):
        parse_object(junk)


NUMBERS = st.integers(-(2**40), 2**40) | st.floats(allow_nan=False)
JUNK = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "agents", "stages", "data", "transport", "from", "x"]), inner)
    ),
    max_leaves=8,
)


@examples(60)
@given(st.sampled_from(sorted(KINDS)), JUNK, JUNK, JUNK)
def test_any_junk_is_either_good_or_refused_by_field(kind, metadata, spec, status):
    document = {"apiVersion": "tarsy.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec, "status": status}
    try:
        resource = parse_object(document)
    except InvalidResource as error:
        assert error.errors
    else:
        assert parse_object(resource.to_dict()) == resource


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        ("Agent", {"maxIterations": "3"}, "spec.maxIterations"),
        ("Agent", {"maxIterations": True}, "spec.maxIterations"),
        ("Alert", {"alertType": "a", "data": "x", "nativeTools": {"urlContext": "yes"}}, "spec.nativeTools.urlContext"),
    ],
)
def test_types_are_as_strict_as_those_of_the_api_server(kind, spec, path):
    assert set(errors(kind, spec)) == {path}


def test_what_cannot_be_json_is_refused():
    assert "cannot be encoded as JSON" in errors("Alert", {"alertType": "a", "data": "\udc80"})[""]


def test_field_error_reads_as_path_and_sentence():
    assert str(FieldError("spec.x", "is required")) == "spec.x: is required"
    assert str(FieldError("", "must be so")) == "must be so"


def test_bad_status_does_not_hide_a_broken_rule_of_the_object():
    document = {"apiVersion": "tarsy.dev/v1alpha1", "kind": "InvestigationDefaults", "metadata": {}, "spec": {}}
    with pytest.raises(InvalidResource, match=r"metadata\.name"):
        parse_object({**document, "status": {"conditions": 3}})
