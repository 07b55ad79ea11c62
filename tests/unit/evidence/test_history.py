"""Tests what of an object is recorded, and what a change of it is."""

from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.evidence.history.digests import MIN_KEY_BYTES, Digests
from tarsy.evidence.history.form import (
    MAX_FORM_BYTES,
    MAX_TEXT,
    FormRules,
    form_of,
    is_recorded,
    pack,
    selected,
    unpack,
)
from tarsy.evidence.history.patch import MAX_FIELDS, MAX_STEPS, apply_patch, difference
from tarsy.evidence.history.versions import NOISE_WINDOW, SNAPSHOT_EVERY, Observation, manager_of, next_step
from tarsy.masking import default_masker
from tarsy.record.reading.object_history import HistoryStep, ObjectHead, ObjectIdentity, VersionAction
from unit.evidence.objects import NOW, Obj, ago, container, made, template, workload

DIGESTS = Digests(b"k" * MIN_KEY_BYTES)
RULES = FormRules(DIGESTS, default_masker().mask)
SHOWN = FormRules(DIGESTS, default_masker().mask, values=True)


def recorded(obj: Obj, rules: FormRules = RULES) -> dict[str, Any]:
    return form_of(obj["kind"], selected(obj), rules)


def observed(obj: Obj, version: int = 1, *, at: datetime = NOW, rules: FormRules = RULES, **more: Any) -> Observation:
    state, meta = selected(obj), obj["metadata"]
    return Observation(
        object=ObjectIdentity("ns-uid", "shop", obj["kind"], meta["name"], meta["uid"]),
        seen_at=at,
        since=more.pop("since", NOW - timedelta(hours=2)),
        digest=rules.digests.of_state(state),
        key_id=rules.digests.key_id,
        resource_version=str(version),
        form=form_of(obj["kind"], state, rules),
        raw=obj,
        exact=more.pop("exact", True),
        **more,
    )


def head_of(obj: Obj, **more: Any) -> ObjectHead:
    """The head of an object that is seen for the first time."""
    step = next_step(None, observed(obj, 1, at=NOW - timedelta(hours=1), since=None, **more))
    assert step is not None and step.head is not None and step.version is None
    return step.head


def changed(before: ObjectHead, obj: Obj, version: int = 2, **more: Any) -> HistoryStep:
    step = next_step(before, observed(obj, version, **more))
    assert step is not None
    return step


def config_map(**data: str) -> Obj:
    return made("ConfigMap", "config", data=data)


def test_values_of_config_maps_environment_headers_and_annotations_are_digests() -> None:
    probe = {"httpGet": {"path": "/", "httpHeaders": [{"name": "X-Key", "value": "header-value"}]}}
    app = container(env=[{"name": "A", "value": "env-value"}], livenessProbe=probe, image="shop/app:1")
    of = template(app)
    of["metadata"]["annotations"] = {"note": "annotation-value"}
    form = orjson.dumps([recorded(workload(of=of)), recorded(config_map(key="config-value"))]).decode()
    for value in ("header-value", "env-value", "annotation-value", "config-value"):
        assert value not in form
        assert DIGESTS.of_value(value) in form
    assert "shop/app:1" in form


def test_a_namespace_may_choose_masked_values_beside_the_digests() -> None:
    form = recorded(config_map(level="debug", auth="password: hunter2222"), SHOWN)
    assert form["data"]["level"] == {"digest": DIGESTS.of_value("debug"), "masked": "debug"}
    assert "hunter2222" not in orjson.dumps(form).decode()
    assert form["data"]["auth"]["digest"] == DIGESTS.of_value("password: hunter2222")


def test_binary_data_is_never_shown() -> None:
    form = recorded(made("ConfigMap", "config", binaryData={"key": "c2VjcmV0"}), SHOWN)
    assert form["binaryData"] == {"key": DIGESTS.of_value("c2VjcmV0")}


@given(
    values=st.dictionaries(
        st.text("abcdefgh_.-", min_size=1, max_size=12),
        st.text(st.characters(codec="ascii", categories=("L", "N", "P")), min_size=9, max_size=60),
        min_size=1,
        max_size=5,
    )
)
def test_no_value_of_a_config_map_is_in_its_form(values: dict[str, str]) -> None:
    form = recorded(config_map(**values))
    stored = orjson.dumps(list(form["data"].values())).decode()
    assert list(form["data"]) == list(values)
    assert all(value not in stored for value in values.values())


@pytest.mark.parametrize("secret", ["password: hunter22secret", "AKIAIOSFODNN7EXAMPLE", "ghp_" + "a1B2" * 9])
def test_other_text_is_masked(secret: str) -> None:
    form = recorded(workload(of=template(container(args=["--login", secret]))))
    assert secret.split(": ")[-1] not in orjson.dumps(form).decode()


def test_an_object_whose_text_cannot_be_masked_is_reduced_to_digests() -> None:
    def broken(text: str) -> str:
        raise RuntimeError(text)

    form = recorded(workload(of=template(container(image="shop/app:1"))), FormRules(DIGESTS, broken))
    assert "shop/app:1" not in orjson.dumps(form).decode()
    found = form["spec"]["template"]["spec"]["containers"][0]
    assert found["image"] == DIGESTS.of_value("shop/app:1")


@pytest.mark.parametrize(("size", "kept"), [(MAX_TEXT - 1, True), (MAX_TEXT, True), (MAX_TEXT + 1, False)])
def test_a_long_text_is_a_digest(size: int, kept: bool) -> None:
    text = "word " * (size // 5) + "w" * (size % 5)
    form = recorded(workload(of=template(container(args=[text]))))
    shown = form["spec"]["template"]["spec"]["containers"][0]["args"][0]
    assert (shown == text) is kept
    assert kept or shown == DIGESTS.of_value(text)


def test_a_large_object_is_reduced_until_it_fits() -> None:
    many = [container(name=f"c{number}", image="x" * 1500) for number in range(60)]
    form = recorded(workload(of=template(*many)))
    assert len(orjson.dumps(form)) <= MAX_FORM_BYTES
    assert form["spec"]["template"]["spec"]["containers"][0]["image"] == DIGESTS.of_value("x" * 1500)
    huge = recorded(workload(of=template(*(container(name=f"c{number}") for number in range(3000)))))
    assert list(huge) == ["tooLarge"]


@pytest.mark.parametrize("length", [MIN_KEY_BYTES - 1, MIN_KEY_BYTES, MIN_KEY_BYTES + 1])
def test_the_key_has_a_least_length(length: int) -> None:
    if length < MIN_KEY_BYTES:
        with pytest.raises(ValueError, match="at least 32"):
            Digests(b"k" * length)
    else:
        assert len(Digests(b"k" * length).key_id) == 8


def test_digests_depend_on_the_key() -> None:
    other = Digests(b"o" * MIN_KEY_BYTES)
    assert other.of_value("x") != DIGESTS.of_value("x") == Digests(b"k" * MIN_KEY_BYTES).of_value("x")
    assert other.key_id != DIGESTS.key_id


def test_what_a_controller_made_is_not_recorded_but_for_pods() -> None:
    owner = workload()
    assert not is_recorded(made("Job", "nightly-1", owner=owner))
    assert is_recorded(made("Pod", "checkout-1", owner=owner))
    assert is_recorded(made("Job", "by-hand"))


def test_status_and_annotations_that_controllers_write_are_not_selected() -> None:
    plain = workload()
    noisy = workload(status={"replicas": 7})
    noisy["metadata"]["annotations"] = {
        "deployment.kubernetes.io/revision": "3",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "control-plane.alpha.kubernetes.io/leader": "me",
    }
    assert selected(noisy) == selected(plain)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab/~", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("ab/~", max_size=3), inner, max_size=3)
        | st.lists(st.fixed_dictionaries({"name": st.sampled_from("xyz"), "v": inner}), max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text("ab/~", max_size=3), JSON), st.dictionaries(st.text("ab/~", max_size=3), JSON))
def test_a_patch_makes_the_new_form_of_the_old_one(old: dict[str, Any], new: dict[str, Any]) -> None:
    found = difference(old, new)
    assert apply_patch(old, found.steps) == new
    assert bool(found.steps) == (_json(old) != _json(new))


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def test_one_and_true_differ_however_deep() -> None:
    assert difference({"a": {"b": [1]}}, {"a": {"b": [True]}}).fields == ["a.b[0]"]


def test_a_digest_equals_its_recorded_text() -> None:
    form = recorded(config_map(a="1"))
    assert difference(unpack(pack(form)), form).steps == []


def test_paths_name_items_of_lists() -> None:
    old = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}}
    new = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}}
    assert difference(old, new).fields == ["spec.containers[b].image"]
    more = {"spec": {"containers": [*new["spec"]["containers"], {"name": "c", "image": "1"}]}}
    assert difference(new, more).fields == ["spec.containers[c]"]
    assert difference({"data": {}}, {"data": {"app.yaml": "x"}}).fields == ["data[app.yaml]"]


@pytest.mark.parametrize("number", [MAX_STEPS - 1, MAX_STEPS, MAX_STEPS + 1])
def test_a_patch_has_a_bounded_number_of_steps_and_paths(number: int) -> None:
    old, new = ({f"k{key}": value for key in range(number)} for value in (1, 2))
    found = difference(old, new)
    assert len(found.steps) == (number if number <= MAX_STEPS else 1)
    assert len(found.fields) == MAX_FIELDS
    assert apply_patch(old, found.steps) == new


def test_the_same_state_is_no_version() -> None:
    assert next_step(head_of(config_map(a="1")), observed(config_map(a="1"), 2)) is None


def test_a_change_that_only_masking_hides_is_a_version_without_paths() -> None:
    old, new = (workload(of=template(container(args=[f"--password={word}"]))) for word in ("hunter2222", "hunter3333"))
    step = changed(head_of(old), new)
    assert step.version is not None and step.version.fields == ()


def test_every_twentieth_version_and_a_deletion_have_the_whole_form() -> None:
    head = head_of(config_map(a="0"))
    for number in range(1, SNAPSHOT_EVERY + 2):
        step = changed(head, config_map(a=str(number)), number + 1)
        assert step.head is not None and step.version is not None and step.version.seq == number
        assert (step.snapshot is not None) == (number == SNAPSHOT_EVERY)
        head = step.head
    gone = next_step(head, Observation(head.object, NOW, NOW, b"", b"", "", None, {}, exact=True))
    assert gone is not None and gone.head is None and gone.snapshot is not None
    assert unpack(gone.snapshot)["data"] == {"a": DIGESTS.of_value(str(SNAPSHOT_EVERY + 1))}


def scaled(replicas: int, manager: str = "kube-controller-manager", **since: float) -> Obj:
    entry = {"manager": manager, "subresource": "scale", "time": ago(**since)}
    fields = {"managedFields": [{**entry, "fieldsV1": {"f:spec": {"f:replicas": {}}}}]}
    return workload(replicas=replicas, metadata=fields)


def test_an_hour_of_an_autoscaler_is_one_version_with_a_count() -> None:
    head = head_of(scaled(1, minutes=300))
    first = changed(head, scaled(2, minutes=58))
    assert first.head is not None and first.head.noise == "Scale" and not first.adds
    known = {**{name: getattr(first.head, name) for name in first.head.__slots__}, "noise_patch": first.version.patch}  # type: ignore[union-attr]
    second = changed(ObjectHead(**known), scaled(5, minutes=30), 3)
    assert second.adds and second.version is not None
    assert second.version.seq == 1
    assert [(step["old"], step["value"]) for step in second.version.patch] == [(1, 5)]
    by_hand = changed(ObjectHead(**known), scaled(5, "kubectl", minutes=30), 3)
    assert not by_hand.adds and by_hand.version is not None and by_hand.version.manager == "kubectl"


@pytest.mark.parametrize(("after", "adds"), [(-1, True), (0, False), (1, False)])
def test_noise_is_added_within_its_window_only(after: int, adds: bool) -> None:
    head = head_of(scaled(1, minutes=300))
    first = changed(head, scaled(2, minutes=60))
    assert first.head is not None
    at = first.head.changed_at + NOISE_WINDOW + timedelta(seconds=after)
    obj = scaled(3)
    obj["metadata"]["managedFields"][0]["time"] = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert changed(first.head, obj, 3, at=at).adds is adds


def crashed(restarts: int, **since: float) -> Obj:
    end = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": ago(**since)}
    status = {"name": "app", "restartCount": restarts, "lastState": {"terminated": end}}
    return made("Pod", "checkout-1", status={"phase": "Running", "containerStatuses": [status] if restarts else []})


def test_of_pods_restarts_and_failures_are_recorded_and_nothing_else() -> None:
    assert selected(crashed(0)) == {}
    step = next_step(None, observed(crashed(1, minutes=5)))
    assert step is not None and step.version is not None and step.head is not None
    assert (step.version.type, step.version.manager) == ("Restart", "kubelet")
    assert step.version.changed_at == NOW - timedelta(minutes=5)
    again = changed(step.head, crashed(2, minutes=1))
    assert again.adds
    evicted = made("Pod", "checkout-1", status={"phase": "Failed", "reason": "Evicted"})
    assert changed(step.head, evicted).version.type == "Delete"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("seconds", "exact", "added", "version"),
    [
        (-2, False, False, False),
        (-1, False, False, True),
        (1, False, False, True),
        (-2, True, True, True),
        (-2, True, False, False),
    ],
)
def test_an_unknown_object_is_created_only_if_it_came_after_the_watch_began(
    seconds: int, exact: bool, added: bool, version: bool
) -> None:
    obj = config_map(a="1")
    created = NOW - timedelta(hours=1) + timedelta(seconds=seconds)
    obj["metadata"]["creationTimestamp"] = created.strftime("%Y-%m-%dT%H:%M:%SZ")
    step = next_step(None, observed(obj, since=NOW - timedelta(hours=1), exact=exact, added=added))
    assert step is not None
    assert (step.version is not None) is version


def test_a_change_found_by_a_listing_says_since_when_it_may_have_been() -> None:
    step = changed(head_of(config_map(a="1")), config_map(a="2"), exact=False, since=NOW - timedelta(minutes=9))
    assert step.version is not None
    assert (step.version.not_before, step.version.changed_at) == (NOW - timedelta(minutes=9), NOW)


def test_a_recorder_that_lags_behind_another_one_writes_nothing() -> None:
    step = changed(head_of(config_map(a="1")), config_map(a="2"), 5)
    assert step.head is not None
    assert next_step(step.head, observed(config_map(a="1"), 4)) is None


def test_the_manager_is_the_one_that_owns_what_changed() -> None:
    def entry(manager: str, path: dict[str, Any], **since: float) -> Obj:
        return {"manager": manager, "time": ago(**since), "fieldsV1": path}

    image = {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {"f:image": {}}}}}}}
    entries = [entry("helm", image, minutes=5), entry("kubectl", {"f:spec": {"f:replicas": {}}}, minutes=1)]
    obj = workload(metadata={"managedFields": entries})
    assert manager_of(obj, [{"op": "replace", "path": "/spec/template/spec/containers/0/image"}])[0] == "helm"
    assert manager_of(obj, [{"op": "replace", "path": "/spec/replicas"}])[0] == "kubectl"
    assert manager_of(obj, [{"op": "remove", "path": "/spec/paused"}])[0] == "kubectl"
    assert manager_of(workload(), []) == ("", None)


def test_deleted_by_a_listing_and_by_a_watch() -> None:
    head = head_of(config_map(a="1"))
    listed = Observation(head.object, NOW, NOW - timedelta(minutes=3), b"", b"", "", None, {}, exact=False)
    step = next_step(head, listed)
    assert step is not None and step.version is not None
    assert step.version.action is VersionAction.DELETED
    assert step.version.not_before == NOW - timedelta(minutes=3)
    assert next_step(None, listed) is None


def test_gitops_objects_tell_the_deployed_revision() -> None:
    old, new = (made("Kustomization", "shop", status={"lastAppliedRevision": rev}) for rev in ("main@1", "main@2"))
    step = changed(head_of(old), new)
    assert step.version is not None and (step.version.type, step.version.fields) == ("GitOps", ("deployed",))


def test_values_of_charts_are_digests() -> None:
    form = recorded(made("HelmRelease", "shop", spec={"chart": "shop", "values": {"db": {"login": "value-of-chart"}}}))
    assert "value-of-chart" not in orjson.dumps(form).decode()
    assert form["spec"]["chart"] == "shop"
