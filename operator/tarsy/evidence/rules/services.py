"""Defines rules about Services, Ingresses and NetworkPolicies: requests that reach no pod."""

from collections.abc import Iterator, Mapping, Sequence

from tarsy.evidence.fields import Object, integer, labels, mapping, mappings, one_line, string, strings
from tarsy.evidence.rules.facts import Facts
from tarsy.evidence.rules.signal import Certainty, Signal, rule
from tarsy.evidence.snapshot import ObjectKey, selects
from tarsy.evidence.workloads import is_over, is_ready, port_numbers, template_labels, template_of

_WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")


def _services(facts: Facts) -> Iterator[tuple[ObjectKey, Object, Mapping[str, str]]]:
    """Yields the Services that select pods of a namespace whose pods were all listed."""
    for key, service in facts.snapshot.items("Service"):
        selector = labels(service, "spec", "selector")
        if selector and facts.snapshot.complete("Pod", key.namespace):
            _chosen(facts, key.namespace, selector)
            if facts.topology.selection.cut:
                return  # not every selector was answered, so that none is known to select nothing
            yield key, service, selector


def _pods(facts: Facts, namespace: str, selector: Mapping[str, str]) -> list[tuple[ObjectKey, Object]]:
    """Returns the pods that a Service's selector selects, without those that ended."""
    found = ((key, facts.snapshot.at(key)) for key in _chosen(facts, namespace, selector) if key.kind == "Pod")
    return [(key, pod) for key, pod in found if not is_over(pod)]


def _workloads(facts: Facts, namespace: str, selector: Mapping[str, str]) -> list[tuple[ObjectKey, Object]]:
    keys = _chosen(facts, namespace, selector)
    return [(key, facts.snapshot.at(key)) for key in keys if key.kind in _WORKLOADS]


def _chosen(facts: Facts, namespace: str, selector: Mapping[str, str]) -> Sequence[ObjectKey]:
    return facts.topology.selection.chosen({"matchLabels": selector}, namespace)


@rule("service-selects-nothing", "The selector of a Service fits no pod and no workload")
def selects_nothing(facts: Facts) -> Iterator[Signal]:
    """Finds Services whose selector fits nothing that is there."""
    for key, _, selector in _services(facts):
        if _pods(facts, key.namespace, selector) or _workloads(facts, key.namespace, selector):
            continue
        shown = ", ".join(f"{name}={text}" for name, text in sorted(selector.items()))
        close = _closest(facts, key.namespace, selector)
        more = f" {close} has some of these labels." if close else ""
        text = f"{key} selects {shown}, and no pod has these labels.{more}"
        certainty = Certainty.CERTAIN if close else Certainty.LIKELY
        yield Signal((key, close) if close else (key,), text, f"selector: {shown}", certainty)


def _closest(facts: Facts, namespace: str, selector: Mapping[str, str]) -> ObjectKey | None:
    """Returns the workload that has some but not all labels of a selector, or one of the Service's own name."""
    best: tuple[int, ObjectKey] | None = None
    for kind in _WORKLOADS:
        for key, obj in facts.snapshot.items(kind, namespace):
            marks = template_labels(template_of(key, obj) or {})
            fitting = sum(marks.get(name) == text for name, text in selector.items())
            if not fitting and key.name in selector.values():
                fitting = 1
            if fitting and (best is None or fitting > best[0]):
                best = fitting, key
    return best[1] if best else None


@rule("service-scaled-to-zero", "The workload behind a Service has no replicas")
def scaled_to_zero(facts: Facts) -> Iterator[Signal]:
    """Finds Services whose workloads are all scaled to zero."""
    for key, _, selector in _services(facts):
        behind = _workloads(facts, key.namespace, selector)
        if behind and all(integer(obj, "spec", "replicas") == 0 for _, obj in behind):
            text = f"{behind[0][0]} behind {key} is scaled to zero, so no pod answers."
            yield Signal((key, behind[0][0]), text, "replicas: 0", Certainty.LIKELY)


@rule("service-no-ready-pod", "None of the pods of a Service is ready")
def no_ready_pod(facts: Facts) -> Iterator[Signal]:
    """Finds Services that have pods of which none is ready."""
    for key, service, selector in _services(facts):
        pods = _pods(facts, key.namespace, selector)
        if pods and not any(is_ready(pod) for _, pod in pods) and not _publishes_unready(service):
            text = f"None of the {len(pods)} pods of {key} is ready, so it has no endpoints."
            yield Signal((key, pods[0][0]), text, "type: Ready, status: False", Certainty.LIKELY)


def _publishes_unready(service: Object) -> bool:
    return mapping(service, "spec").get("publishNotReadyAddresses") is True


@rule("service-target-port", "A Service sends requests to a port that its pods do not declare")
def target_port(facts: Facts) -> Iterator[Signal]:
    """Finds Services whose target port is not among the ports of their pods."""
    for key, service, selector in _services(facts):
        pods = _pods(facts, key.namespace, selector) or _workloads(facts, key.namespace, selector)
        if not pods:
            continue
        numbers: set[int] = set()
        names: set[str] = set()
        for other, obj in pods:
            found, named = port_numbers(template_of(other, obj) or {})
            numbers |= found
            names |= named.keys()
        for port in mappings(service, "spec", "ports"):
            target = port.get("targetPort", port.get("port"))
            if isinstance(target, str) and not target.isdigit() and target not in names:
                text = f"{key} sends requests to port {target!r}, which no container of its pods declares."
                yield Signal((key, pods[0][0]), text, f"targetPort: {target}")
            elif isinstance(target, int) and numbers and target not in numbers:
                declared = ", ".join(map(str, sorted(numbers)))
                text = f"{key} sends requests to port {target}; its pods declare {declared}."
                yield Signal((key, pods[0][0]), text, f"targetPort: {target}", Certainty.LIKELY)


@rule("ingress-backend-missing", "An Ingress sends requests to a Service or port that does not exist")
def backend_missing(facts: Facts) -> Iterator[Signal]:
    """Finds Ingresses whose backend does not exist."""
    for key, ingress in facts.snapshot.items("Ingress"):
        if not facts.snapshot.complete("Service", key.namespace):
            continue
        backends = [mapping(ingress, "spec", "defaultBackend", "service")]
        for one in mappings(ingress, "spec", "rules"):
            backends += [mapping(path, "backend", "service") for path in mappings(one, "http", "paths")]
        for backend in backends:
            if not (name := string(backend, "name")):
                continue
            target = ObjectKey("Service", key.namespace, name)
            service = facts.snapshot.at(target)
            port = mapping(backend, "port")
            wanted = port.get("number", port.get("name"))
            if not service:
                yield Signal((key, target), f"{key} sends requests to {target}, which does not exist.", f"name: {name}")
            elif wanted not in _ports(service):
                text = f"{key} sends requests to port {wanted} of {target}, which has no such port."
                yield Signal((key, target), text, f"port: {wanted}")


def _ports(service: Object) -> list[object]:
    return [port.get(field) for port in mappings(service, "spec", "ports") for field in ("port", "name")]


@rule("ingress-class-missing", "No IngressClass of the name that an Ingress gives exists")
def ingress_class(facts: Facts) -> Iterator[Signal]:
    """Finds Ingresses that no controller takes, because their class does not exist."""
    for key, ingress in facts.snapshot.items("Ingress"):
        name = string(ingress, "spec", "ingressClassName")
        target = ObjectKey("IngressClass", "", name)
        if name and facts.snapshot.complete("IngressClass", "") and not facts.snapshot.at(target):
            yield Signal((key, target), f"{key} names {target}, which does not exist.", f"ingressClassName: {name}")


@rule("route-refused", "A Gateway does not accept an HTTPRoute, or finds no backend for it")
def route_refused(facts: Facts) -> Iterator[Signal]:
    """Finds HTTPRoutes that the controller of their Gateway refuses."""
    for key, route in facts.snapshot.items("HTTPRoute"):
        conditions = (one for parent in mappings(route, "status", "parents") for one in mappings(parent, "conditions"))
        bad = (c for c in conditions if c.get("type") in ("Accepted", "ResolvedRefs") and c.get("status") == "False")
        if (one := next(bad, None)) is not None:
            message = one_line(string(one, "message"), f"reason: {string(one, 'reason')}")
            yield Signal((key,), f"A Gateway refuses {key}: {string(one, 'reason')}.", message)


@rule("statefulset-service-missing", "The Service that gives the pods of a StatefulSet their names does not exist")
def governing_service(facts: Facts) -> Iterator[Signal]:
    """Finds StatefulSets whose Service does not exist, so that no pod finds another by its name."""
    for key, workload in facts.snapshot.items("StatefulSet"):
        target = ObjectKey("Service", key.namespace, string(workload, "spec", "serviceName"))
        if target.name and facts.snapshot.complete("Service", key.namespace) and not facts.snapshot.at(target):
            text = f"{key} names {target}, which does not exist, so its pods have no names in DNS."
            yield Signal((key, target), text, f"serviceName: {target.name}", Certainty.LIKELY)


@rule("network-policy-isolates", "A NetworkPolicy lets no traffic in to pods that a Service selects")
def policy_isolates(facts: Facts) -> Iterator[Signal]:
    """Finds NetworkPolicies without any ingress rule over pods that a Service selects."""
    for key, policy in facts.snapshot.items("NetworkPolicy"):
        types = strings(policy, "spec", "policyTypes")
        if mappings(policy, "spec", "ingress") or (types and "Ingress" not in types):
            continue
        chosen = mapping(policy, "spec", "podSelector")
        for service, _, selector in _services(facts):
            if service.namespace != key.namespace:
                continue
            pods = _pods(facts, key.namespace, selector)
            hit = next((pod for pod, obj in pods if selects(chosen, template_labels(obj))), None)
            if hit is not None and not _allowed(facts, key, hit):
                text = f"{key} lets nothing in to the pods of {service}."
                yield Signal((key, service), text, "policyTypes: Ingress", Certainty.LIKELY)
                break


def _allowed(facts: Facts, policy: ObjectKey, pod: ObjectKey) -> bool:
    """Returns whether another policy lets something in to a pod; rules of policies add up."""
    marks = template_labels(facts.snapshot.at(pod))
    return any(
        key != policy and mappings(other, "spec", "ingress") and selects(mapping(other, "spec", "podSelector"), marks)
        for key, other in facts.snapshot.items("NetworkPolicy", policy.namespace)
    )


RULES = (
    selects_nothing,
    scaled_to_zero,
    no_ready_pod,
    target_port,
    backend_missing,
    ingress_class,
    route_refused,
    governing_service,
    policy_isolates,
)
