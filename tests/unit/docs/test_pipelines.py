"""Checks the samples for programs in the cluster: addresses lead to a port, the verdict's template to its route."""

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml

from tarsy.evidence.verdict import TargetHealth
from tarsy.http.table import all_routes
from tarsy.http.views.evidence import VerdictView
from unit.docs.printed import CHECKOUT, blocks, pages

_ADDRESS = re.compile(r"(https?)://tarsy-api\.tarsy-system(?:\.svc[a-z.]*)?(?::(\d+))?(?=[/\"'`\s])")
_STANDARD = {"http": 80, "https": 443}


def _service_ports() -> set[int]:
    text = (CHECKOUT / "manifests" / "base" / "record-api.yaml").read_text("utf-8")
    (service,) = [one for one in yaml.safe_load_all(text) if one["metadata"]["name"] == "tarsy-api"]
    return {port["port"] for port in service["spec"]["ports"]}


def _template() -> dict[str, Any]:
    """Returns the metric of the AnalysisTemplate on the page of verdicts."""
    texts = [text for page, text in blocks("yaml") if page == "verdict.md" and "AnalysisTemplate" in text]
    (template,) = (yaml.safe_load(text) for text in texts)
    (metric,) = template["spec"]["metrics"]
    return {**metric, "args": {one["name"] for one in template["spec"]["args"]}}


def test_addresses_of_the_http_api_in_the_cluster_lead_to_a_port_of_its_service() -> None:
    files = [*(CHECKOUT / "manifests").rglob("*.yaml")]
    texts = {**pages(), **{str(path.relative_to(CHECKOUT)): path.read_text("utf-8") for path in files}}
    found = {
        (name, int(port or _STANDARD[scheme]), scheme)
        for name, text in texts.items()
        for scheme, port in _ADDRESS.findall(text)
    }
    assert len({name for name, *_ in found}) > 1
    assert {one for one in found if one[1] not in _service_ports() or one[2] != "http"} == set()


def test_the_template_of_argo_rollouts_asks_the_route_and_reads_the_verdict() -> None:
    metric = _template()
    web = metric["provider"]["web"]
    used = set(re.findall(r"\{\{args\.(\w+)\}\}", str(metric)))
    assert used == metric["args"]
    url = urlsplit(re.sub(r"\{\{args\.(\w+)\}\}", r"\1", web["url"]))
    (route,) = [one for one in all_routes() if one.path == "/namespaces/{namespace}/verdict"]
    assert (route.method, url.path) == ("GET", "/api/v1/namespaces/namespace/verdict")
    assert dict(parse_qsl(url.query)).keys() == {"target"}
    assert web["jsonPath"] == "{$.verdict}" and "verdict" in VerdictView.model_fields
    assert [one["key"] for one in web["headers"]] == ["Authorization"]


def test_the_template_passes_fails_and_leaves_open_what_the_verdict_says() -> None:
    metric = _template()

    def said(health: TargetHealth) -> str:
        holds = {name: metric[f"{name}Condition"] == f'result == "{health.value}"' for name in ("success", "failure")}
        assert not all(holds.values())
        return next((name for name, held in holds.items() if held), "inconclusive")

    outcomes = {health: said(health) for health in TargetHealth}
    assert outcomes == {
        TargetHealth.HEALTHY: "success",
        TargetHealth.FAULTY: "failure",
        TargetHealth.INCONCLUSIVE: "inconclusive",
    }
    assert metric["failureLimit"] == 0 and metric["inconclusiveLimit"] < metric["count"]
