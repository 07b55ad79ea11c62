"""Writes the metadata of charts and bundle for Artifact Hub: annotations of a chart, and the file of a repository."""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from hack.chart.rendering import MANIFESTS

CAPABILITIES: Final = "Seamless Upgrades"
_LONGEST: Final = 300


def hub_annotations(kinds: Sequence[Mapping[str, Any]], image: str) -> dict[str, str]:
    """Returns the annotations of a chart.

    Args:
        kinds: the CustomResourceDefinitions that the chart has; none: it is no operator.
        image: that the chart names.
    """
    found = {
        "artifacthub.io/category": "monitoring-logging",
        "artifacthub.io/images": _yaml([{"name": "tarsy-operator", "image": image}]),
        "artifacthub.io/license": "Apache-2.0",
        "artifacthub.io/operator": "true" if kinds else "false",
    }
    if kinds:
        found["artifacthub.io/operatorCapabilities"] = CAPABILITIES
        found["artifacthub.io/crds"] = _yaml([_listed(crd) for crd in kinds])
        found["artifacthub.io/crdsExamples"] = _yaml(samples())
    return found


def samples() -> list[dict[str, Any]]:
    """Returns the samples of the kinds, one for each kind that people write."""
    paths = sorted((MANIFESTS / "samples" / "kinds").glob("*.yaml"))
    return [yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths]


def described(crd: Mapping[str, Any]) -> str:
    """Returns the sentence that a CustomResourceDefinition says of its kind."""
    (version,) = crd["spec"]["versions"]
    return " ".join(version["schema"]["openAPIV3Schema"].get("description", crd["spec"]["names"]["kind"]).split())


def write_repository(path: Path, identity: str) -> None:
    """Writes `artifacthub-repo.yml`, by which Artifact Hub knows the publisher of a repository.

    Args:
        path: of the file.
        identity: ID that Artifact Hub gave the repository.

    Raises:
        ValueError: it is not a UUID.
    """
    try:
        known = uuid.UUID(identity)
    except ValueError:
        raise ValueError(f"--artifacthub-id={identity}: give the ID (a UUID) that Artifact Hub shows") from None
    path.write_text(_yaml({"repositoryID": str(known)}), encoding="utf-8")


def _listed(crd: Mapping[str, Any]) -> dict[str, str]:
    spec = crd["spec"]
    (version,) = spec["versions"]
    return {
        "kind": spec["names"]["kind"],
        "version": version["name"],
        "name": spec["names"]["plural"],
        "displayName": spec["names"]["kind"],
        "description": described(crd)[:_LONGEST],
    }


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, width=10_000, sort_keys=False)
