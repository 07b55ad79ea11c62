"""Defines the two charts, and writes them."""

import re
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from hack.chart.artifact_hub import hub_annotations
from hack.chart.rendering import ObjectKey, kustomized
from hack.chart.templates import IMAGE, Names, Template

SOURCES: Final = Path(__file__).parent / "sources"
"""What of the charts is written by hand: values, their schema, helpers, notes."""

_USUAL_IMAGE: Final = "tarsy-operator:{}"
IMAGE_NAME: Final = re.compile(
    r"^(?P<repository>[a-z0-9]+(?:[a-z0-9._/-]|:[0-9]+/)*)(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?$"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """Values, and what kustomize renders for them.

    Args:
        condition: expression that is true for these values.
        values: that make it true.
        resources: folders of manifests/.
        components: folders of components.
    """

    condition: str
    values: Mapping[str, Any]
    resources: tuple[str, ...]
    components: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HelmChart:
    """A chart.

    Args:
        name: of the chart.
        description: one sentence.
        choices: exactly one is true.
        additions: objects beside, each on its own condition.
        names: what its templates replace.
        kubernetes: versions that it can be installed on.
    """

    name: str
    description: str
    choices: Sequence[Choice]
    names: Names
    additions: Sequence[Choice] = ()
    kubernetes: str = ">=1.30.0-0"


def _profile(name: str, *resources: str, components: tuple[str, ...] = ()) -> Choice:
    return Choice(f'eq .Values.profile "{name}"', {"profile": name}, resources, components)


PRODUCT: Final = HelmChart(
    "tarsy",
    "Investigates alerts with chains of LLM agents that hold MCP tools, as custom resources.",
    (
        _profile("minimal", "base"),
        _profile("single", "base", components=("components/policies",)),
        _profile("workers", "overlays/workers"),
        _profile("ha", "overlays/ha"),
    ),
    Names(
        {"tarsy-system": ".Release.Namespace", "tarsy-library": ".Values.libraryNamespace"},
        {"tarsy-operator": "operator", "tarsy-worker": "worker"},
    ),
    (
        Choice(".Values.monitoring.enabled", {"monitoring": {"enabled": True}}, (), ("components/monitoring",)),
        Choice(".Values.gitFetcher.enabled", {"gitFetcher": {"enabled": True}}, (), ("components/git-fetcher",)),
        Choice(".Values.slack.enabled", {"slack": {"enabled": True}}, (), ("components/slack",)),
    ),
)
LIBRARY: Final = HelmChart(
    "tarsy-library",
    "Agents, chains and read-only tools of TARSy for the alerts that most clusters have.",
    (
        Choice("not .Values.prometheus.enabled", {}, ("library",)),
        Choice(
            ".Values.prometheus.enabled",
            {"prometheus": {"enabled": True}},
            ("library",),
            ("components/prometheus-tools", "components/library-metrics"),
        ),
    ),
    Names(
        {"tarsy-library": ".Release.Namespace", "tarsy-system": ".Values.operatorNamespace"},
        {},
        {"PROMETHEUS_URL": ".Values.prometheus.url"},
    ),
)
CHARTS: Final = (PRODUCT, LIBRARY)


def write_chart(chart: HelmChart, out: Path, version: str, *, image: str = "") -> None:
    """Writes a chart into a folder, which is emptied first.

    Args:
        chart: the chart.
        out: the folder.
        version: of chart and product.
        image: that the chart names; empty: as manifests/ does.
    """
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(SOURCES / chart.name, out)
    shutil.copy(SOURCES / "_helpers.tpl", out / "templates" / "_helpers.tpl")
    texts = templates_of(chart)
    for name, text in texts.items():
        (out / "templates" / name).write_text(text, encoding="utf-8")
    if image:
        _name_image(out / "values.yaml", image)
    kinds = [
        obj for obj in kustomized(chart.choices[0].resources).values() if obj["kind"] == "CustomResourceDefinition"
    ]
    head = {
        "apiVersion": "v2",
        "name": chart.name,
        "description": chart.description,
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": chart.kubernetes,
        "keywords": ["kubernetes", "alerts", "investigation", "sre", "llm", "mcp"],
        "annotations": hub_annotations(kinds, image or _USUAL_IMAGE.format(version)),
    }
    (out / "Chart.yaml").write_text(yaml.safe_dump(head, sort_keys=False, width=10_000), encoding="utf-8")


def templates_of(chart: HelmChart) -> dict[str, str]:
    """Returns the templates of a chart, by file name."""
    forms: dict[ObjectKey, list[tuple[Mapping[str, Any], list[str]]]] = defaultdict(list)
    for choice in chart.choices:
        for key, obj in kustomized(choice.resources, choice.components).items():
            for same, conditions in forms[key]:
                if same == obj:
                    conditions.append(choice.condition)
                    break
            else:
                forms[key].append((obj, [choice.condition]))
    for addition in chart.additions:
        for key, obj in kustomized(addition.resources, addition.components).items():
            if key in forms:
                raise ValueError(f"{key} of {addition.condition} is in the chart already")
            forms[key].append((obj, [addition.condition]))
    texts: dict[str, list[str]] = defaultdict(list)
    for key, variants in sorted(forms.items()):
        for obj, conditions in variants:
            everywhere = len(conditions) == len(chart.choices)
            texts[_file_of(key)].append(_document(chart, obj, [] if everywhere else conditions))
    return {name: "".join(documents) for name, documents in sorted(texts.items())}


def _document(chart: HelmChart, obj: Mapping[str, Any], conditions: Sequence[str]) -> str:
    guards = [f"({one})" for one in conditions]
    tests = [f"or {' '.join(guards)}" if len(guards) > 1 else conditions[0]] if guards else []
    if obj["kind"] == "CustomResourceDefinition":
        tests.append(".Values.crds.enabled")
    if obj["kind"] == "Namespace":
        tests.append(".Values.namespace.create")
    body = f"---\n{Template(chart.names).of(obj)}"
    if not tests:
        return body
    test = f"and {' '.join(f'({one})' for one in tests)}" if len(tests) > 1 else tests[0]
    return f"{{{{- if {test} }}}}\n{body}{{{{- end }}}}\n"


def _file_of(key: ObjectKey) -> str:
    _, kind, _, name = key
    if kind == "CustomResourceDefinition":
        return f"crd-{name.partition('.')[0]}.yaml"
    return f"{kind.lower()}-{name}.yaml"


def _name_image(values: Path, image: str) -> None:
    found = IMAGE_NAME.match(image)
    if found is None or IMAGE.match(image):
        raise ValueError(f"--image={image}: give registry/name:tag, or registry/name@sha256:digest")
    text = values.read_text(encoding="utf-8")
    for field in ("repository", "tag", "digest"):
        text = re.sub(rf"^  {field}: .*$", f'  {field}: "{found[field] or ""}"', text, count=1, flags=re.MULTILINE)
    values.write_text(text, encoding="utf-8")
