"""Tests that the fields of every served built-in kind are read correctly from the installed package."""

import pytest

from embedded_kubeapi.builtin.catalog import builtin_resources
from embedded_kubeapi.builtin.events import EVENTS_V1
from embedded_kubeapi.http.openapi import document_v2
from embedded_kubeapi.http.openapi_proto import encode_v2
from embedded_kubeapi.registry import Registry
from embedded_kubeapi.schema.builtin import BuiltinSchema, DecodeError
from embedded_kubeapi.schema.models import Type, documentation, model, model_of
from embedded_kubeapi.shape import builtin_shape


def test_every_served_kind_has_a_model_whose_types_are_all_known() -> None:
    for resource in builtin_resources():
        assert isinstance(resource.schema, BuiltinSchema), resource.kind
        seen, waiting = set[str](), [resource.schema.model]
        while waiting:
            name = waiting.pop()
            seen.add(name)
            for kind in model(name).fields.values():
                inside: Type | None = kind
                while inside is not None:
                    if inside.model and inside.model not in seen:
                        waiting.append(inside.model)
                    inside = inside.of
        assert len(seen) > 1, resource.kind


def test_model_tells_types_and_documentation() -> None:
    port = model("V1ContainerPort").fields
    assert port["containerPort"] == Type("integer")
    assert "containerPort" in documentation("V1ContainerPort").required
    assert documentation("V1ContainerPort").fields["protocol"]
    container = model("V1Container").fields
    assert container["ports"] == Type("list", Type("model", model="V1ContainerPort"))
    assert model("V1ResourceRequirements").fields["limits"] == Type("map", Type("quantity"))
    assert model("V1JSONSchemaProps").fields["items"] == Type("model", model="V1JSONSchemaProps")
    assert model_of("", "v1", "Event") == "CoreV1Event"
    assert model_of("nobody.example.com", "v1", "Unheard") is None


@pytest.mark.parametrize(
    ("spec", "unknown"),
    [
        ({"containers": [{"name": "a", "odd": 1}], "odd": 1}, ["spec.containers[0].odd", "spec.odd"]),
        ({"volumes": [{"name": "v", "emptyDir": {"odd": 1}}]}, ["spec.volumes[0].emptyDir.odd"]),
        ({"nodeSelector": {"any": "thing"}}, []),
    ],
)
def test_unknown_fields_are_named_by_their_place(spec: dict[str, object], unknown: list[str]) -> None:
    _, found = BuiltinSchema("V1Pod").clean(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    )
    assert sorted(found) == unknown


@pytest.mark.parametrize("value", ["1", True, 1.5, [], {}])
def test_number_is_nothing_else(value: object) -> None:
    with pytest.raises(DecodeError, match="of type int32"):
        BuiltinSchema("V1Deployment").clean({"spec": {"replicas": value}})


def test_int_or_string_is_either() -> None:
    budget = BuiltinSchema("V1PodDisruptionBudget")
    for value in (1, "25%"):
        assert budget.clean({"spec": {"minAvailable": value}}) == ({"spec": {"minAvailable": value}}, [])


@pytest.mark.parametrize(
    ("kind", "path", "keys"),
    [
        ("V1Pod", ("spec", "containers"), ("name",)),
        ("V1Service", ("spec", "ports"), ("port", "protocol")),
        ("V1Pod", ("status", "conditions"), ("type",)),
        ("V1ServiceAccount", ("imagePullSecrets",), ("name",)),
        ("V1ValidatingAdmissionPolicy", ("spec", "matchConditions"), ("name",)),
        ("V1Pod", ("spec", "tolerations"), ()),
        ("V1Role", ("rules",), ()),
    ],
)
def test_lists_have_the_keys_of_their_types(kind: str, path: tuple[str, ...], keys: tuple[str, ...]) -> None:
    shape = builtin_shape(kind)
    for name in path:
        shape = shape.field(name)
    assert shape.keys == keys
    assert shape.list_type == ("map" if keys else "atomic")


def test_protobuf_of_openapi_has_every_definition_and_path() -> None:
    document = document_v2(Registry(builtin_resources()))
    message = encode_v2(document)
    for name in (*document["definitions"], *document["paths"]):
        assert name.encode() in message
    for definition in document["definitions"].values():
        assert "oneOf" not in definition and "allOf" not in definition


def test_event_keeps_what_it_says_in_both_forms() -> None:
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {}, "involvedObject": {}, "message": "m", "count": 1}
    shown = EVENTS_V1.shown(event)
    assert shown["note"] == "m" and shown["deprecatedCount"] == 1 and "regarding" in shown
    assert EVENTS_V1.stored(shown) == event
