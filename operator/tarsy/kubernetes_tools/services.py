"""Renders the endpoints behind a Service, and why there are none."""

from collections.abc import Iterable, Mapping
from typing import Any

MOST_ENDPOINTS = 100


def render_endpoints(
    service: Mapping[str, Any], slices: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]]
) -> str:
    """Renders a Service, its EndpointSlices and the pods that its selector matches.

    Args:
        service: the Service.
        slices: the EndpointSlices of this Service.
        pods: the pods that match its selector; none if it has no selector.
    """
    spec, name = service.get("spec") or {}, (service.get("metadata") or {}).get("name")
    slices, pods = list(slices), list(pods)
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    lines = [f"Service {name} type={spec.get('type', 'ClusterIP')} selector={selector or 'none'}"]
    if spec.get("type") == "ExternalName":
        return f"{lines[0]}\nit is an alias of {spec.get('externalName')} and has no endpoints"
    lines += [
        f"port {port.get('name') or '-'} {port.get('port')} -> targetPort {port.get('targetPort', port.get('port'))}"
        for port in spec.get("ports") or ()
    ]
    endpoints = [(part, item) for part in slices for item in part.get("endpoints") or ()]
    ready = [pair for pair in endpoints if _ready(pair[1])]
    lines.append(f"endpoints: {len(ready)} ready of {len(endpoints)}")
    lines += [_endpoint(part, item) for part, item in sorted(endpoints, key=lambda pair: _ready(pair[1]))][
        :MOST_ENDPOINTS
    ]
    if len(endpoints) > MOST_ENDPOINTS:
        lines.append(f"[{len(endpoints) - MOST_ENDPOINTS} more endpoints are left out, ready ones first]")
    lines += _reasons(spec, selector, len(ready), pods)
    return "\n".join(lines)


def _reasons(spec: Mapping[str, Any], selector: str, ready: int, pods: list[Mapping[str, Any]]) -> list[str]:
    reasons = []
    if not selector:
        reasons.append("it has no selector: someone else maintains its endpoints")
    elif not pods:
        reasons.append(f"no pod in the namespace has the labels {selector}: the Service has nowhere to send traffic")
    elif not ready:
        reasons.append(f"{len(pods)} pods match the selector and none is ready: look at their readiness probes")
    for port in spec.get("ports") or ():
        target = port.get("targetPort")
        if pods and isinstance(target, str) and not target.isdigit() and not any(_has_port(p, target) for p in pods):
            reasons.append(f"no container of the matching pods has a port named {target!r}: traffic to it is refused")
    return reasons


def _has_port(pod: Mapping[str, Any], name: str) -> bool:
    containers = (pod.get("spec") or {}).get("containers") or ()
    return any(port.get("name") == name for container in containers for port in container.get("ports") or ())


def _ready(endpoint: Mapping[str, Any]) -> bool:
    # The API: an absent condition is to be read as ready.
    return (endpoint.get("conditions") or {}).get("ready") is not False


def _endpoint(part: Mapping[str, Any], endpoint: Mapping[str, Any]) -> str:
    target = endpoint.get("targetRef") or {}
    ports = ",".join(str(port.get("port")) for port in part.get("ports") or ())
    conditions = endpoint.get("conditions") or {}
    state = "ready" if _ready(endpoint) else "not-ready"
    state += " terminating" if conditions.get("terminating") else ""
    who = f"{target.get('kind')}/{target.get('name')}" if target else "no object"
    return f"  {','.join(endpoint.get('addresses') or ())}:{ports} {who} node={endpoint.get('nodeName')} {state}"
