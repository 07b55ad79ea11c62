"""Tests which objects reach a target, and how far."""

from tarsy.evidence.edges import Relation
from tarsy.evidence.snapshot import ObjectKey
from tarsy.evidence.topology import WEIGHTS, Topology
from unit.evidence.objects import Obj, container, made, node, pod, service, snapshot, template, topology, workload

OF = template(
    container(
        envFrom=[{"configMapRef": {"name": "checkout-config"}}],
        env=[
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "pay-key", "key": "key"}}},
            {"name": "CART", "value": "http://cart:80/v1"},
        ],
    ),
    serviceAccountName="checkout",
    volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
)
DEPLOYMENT = workload(of=OF)
REPLICA_SET = workload("ReplicaSet", "checkout-5d", of=OF, owner=DEPLOYMENT)
POD = pod(of=OF, owner=REPLICA_SET)
TARGET = ObjectKey("Deployment", "shop", "checkout")


def key(kind: str, name: str, namespace: str = "shop") -> ObjectKey:
    return ObjectKey(kind, namespace, name)


def weight(of: ObjectKey, *objects: Obj) -> float | None:
    reach = topology(DEPLOYMENT, REPLICA_SET, POD, *objects).scope(TARGET).get(of)
    return None if reach is None else round(reach.weight, 3)


def test_target_stands_for_its_owners_and_what_they_own() -> None:
    found = topology(DEPLOYMENT, REPLICA_SET, POD).group(key("Pod", "checkout-1"))
    assert found == {TARGET, key("ReplicaSet", "checkout-5d"), key("Pod", "checkout-1")}


def test_owners_that_own_each_other_end() -> None:
    one, other = made("Thing", "one"), made("Thing", "other")
    one["metadata"]["ownerReferences"] = [{"uid": other["metadata"]["uid"], "kind": "Thing", "name": "other"}]
    other["metadata"]["ownerReferences"] = [{"uid": one["metadata"]["uid"], "kind": "Thing", "name": "one"}]
    assert topology(one, other).group(key("Thing", "one")) == {key("Thing", "one"), key("Thing", "other")}


def test_objects_without_an_owner_are_adopted_by_the_controller_that_selects_them() -> None:
    chosen = {"selector": {"matchLabels": {"app": "checkout"}}}
    deployment, replica_set = workload(spec=chosen), workload("ReplicaSet", "checkout-5d", spec=chosen)
    owned = pod("owned", owner=made("ReplicaSet", "other"))
    found = topology(deployment, replica_set, pod(), owned).group(TARGET)
    assert found == {TARGET, key("ReplicaSet", "checkout-5d"), key("Pod", "checkout-1")}


def test_claims_of_a_stateful_sets_templates_are_its_own_and_others_are_not() -> None:
    store = workload("StatefulSet", "db", spec={"volumeClaimTemplates": [{"metadata": {"name": "data"}}]})
    names = ("data-db-0", "data-db-12", "data-db", "data-db-x", "logs-db-0")
    claims = [made("PersistentVolumeClaim", name) for name in names]
    group = topology(store, *claims).group(ObjectKey("StatefulSet", "shop", "db"))
    assert {key.name for key in group if key.kind == "PersistentVolumeClaim"} == {"data-db-0", "data-db-12"}


def test_what_a_pod_refers_to_reaches_its_deployment() -> None:
    assert weight(key("ConfigMap", "checkout-config")) == WEIGHTS[Relation.CONFIGURES]
    assert weight(key("Secret", "pay-key")) == WEIGHTS[Relation.CONFIGURES]
    assert weight(key("PersistentVolumeClaim", "data")) == WEIGHTS[Relation.STORES]
    assert weight(key("ServiceAccount", "checkout")) == WEIGHTS[Relation.AUTHORIZES]


def test_a_config_map_of_another_workload_does_not_reach_it() -> None:
    other = workload(name="cart", of=template(container(envFrom=[{"configMapRef": {"name": "cart-config"}}])))
    assert weight(key("ConfigMap", "cart-config"), other) is None


def test_nodes_quotas_policies_and_autoscalers_reach_it() -> None:
    quota = made("ResourceQuota", "small")
    policy = made("NetworkPolicy", "deny", spec={"podSelector": {}})
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "checkout"}}
    scaler = made("HorizontalPodAutoscaler", "checkout", spec=spec)
    assert weight(key("Node", "node-1", ""), node()) == WEIGHTS[Relation.RUNS]
    assert weight(key("ResourceQuota", "small"), quota) == WEIGHTS[Relation.LIMITS]
    assert weight(key("NetworkPolicy", "deny"), policy) == WEIGHTS[Relation.RESTRICTS]
    assert weight(key("HorizontalPodAutoscaler", "checkout"), scaler) == WEIGHTS[Relation.SCALES]


def test_a_service_that_it_calls_and_the_pods_behind_reach_it() -> None:
    cart = workload(name="cart", of=template(labels={"app": "cart"}))
    calls = service("cart", selector={"app": "cart"})
    assert weight(key("Service", "cart"), cart, calls) == WEIGHTS[Relation.SERVES]
    behind = weight(key("Deployment", "cart"), cart, calls)
    assert behind == round(WEIGHTS[Relation.SERVES] ** 2, 3)


def test_the_longest_path_ends_after_three_steps() -> None:
    def calls(name: str, other: str) -> tuple[Obj, Obj]:
        of = template(container(env=[{"name": "NEXT", "value": f"http://{other}/"}]), labels={"app": name})
        return workload(name=name, of=of), service(name, selector={"app": name})

    graph = topology(*calls("a", "b"), *calls("b", "c"), *calls("c", "d"))
    scope = graph.scope(key("Deployment", "a"))
    assert key("Deployment", "b") in scope  # a <- Service b <- Deployment b
    assert key("Service", "c") in scope
    assert key("Deployment", "c") not in scope


def test_blast_radius_goes_the_other_way() -> None:
    web = workload(name="web", of=template(container(env=[{"name": "C", "value": "checkout.shop.svc:80"}])))
    radius = topology(DEPLOYMENT, REPLICA_SET, POD, service(), web).blast_radius(key("ConfigMap", "checkout-config"))
    assert TARGET in radius
    assert key("Deployment", "web") in radius


def test_unknown_kinds_and_wrong_types_are_no_edges() -> None:
    odd = [
        {"kind": "Service", "metadata": {"name": "odd", "namespace": "shop"}, "spec": {"selector": ["app"]}},
        {"kind": "Pod", "metadata": {"name": "odd", "namespace": "shop"}, "spec": {"containers": "none", "volumes": 3}},
        {"kind": "Ingress", "metadata": {"name": "odd", "namespace": "shop"}, "spec": {"rules": [None, {"http": 1}]}},
        {"kind": "Gadget", "metadata": {"name": "odd", "ownerReferences": {"uid": "x"}}},
        {"kind": "Pod", "metadata": "none"},
        {"kind": 7},
    ]
    found = Topology(snapshot(*odd))
    assert found.scope(key("Pod", "odd")).keys() == {key("Pod", "odd")}


def test_ten_thousand_pods_and_a_hundred_services() -> None:
    pods = [pod(f"p-{n}", of=template(labels={"app": f"a{n % 100}"})) for n in range(10_000)]
    services = [service(f"s-{n}", selector={"app": f"a{n}"}) for n in range(100)]
    graph = topology(*pods, *services)
    assert len(graph.out_of(key("Service", "s-7"))) == 100
