"""Tests how the HTTP API is reached from outside: the components name what the base has, and one host."""

from unit.manifests.shipped import objects


def _base(kind: str, name: str) -> dict:
    return next(obj for obj in objects("base") if (obj["kind"], obj["metadata"]["name"]) == (kind, name))


def _only(component: str) -> dict:
    (found,) = objects(f"components/{component}")
    return found


def test_the_ingress_leads_to_the_port_of_the_http_api():
    (rule,) = _only("ingress")["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    service = _base("Service", path["backend"]["service"]["name"])
    assert path["backend"]["service"]["port"]["name"] in [port["name"] for port in service["spec"]["ports"]]


def test_the_route_of_the_gateway_leads_to_the_port_of_the_http_api():
    (rule,) = _only("gateway")["spec"]["rules"]
    (backend,) = rule["backendRefs"]
    service = _base("Service", backend["name"])
    assert backend["port"] in [port["port"] for port in service["spec"]["ports"]]
    assert rule["timeouts"]["request"] == "0s"


def test_the_certificate_is_that_of_the_ingress():
    ingress, certificate = _only("ingress")["spec"], _only("certmanager")["spec"]
    (tls,) = ingress["tls"]
    assert tls["secretName"] == certificate["secretName"]
    assert tls["hosts"] == certificate["dnsNames"] == [rule["host"] for rule in ingress["rules"]]
    assert _only("gateway")["spec"]["hostnames"] == tls["hosts"]


def test_nothing_but_the_http_api_is_reached_from_outside():
    service = _base("Service", "tarsy-api")
    assert [port["targetPort"] for port in service["spec"]["ports"]] == ["http"]
