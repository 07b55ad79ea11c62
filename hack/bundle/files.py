"""Writes the folder of the bundle, its Dockerfile, and what is applied beside."""

import shutil
from pathlib import Path
from typing import Any, Final

import yaml
from hack.bundle.csv import PACKAGE, cluster_service_version
from hack.bundle.objects import Objects, sorted_objects
from hack.chart.charts import IMAGE_NAME
from hack.chart.rendering import ObjectKey
from hack.chart.templates import IMAGE

MEDIA_TYPE: Final = "registry+v1"
_PREFIX: Final = "operators.operatorframework.io.bundle"


class _Dumper(yaml.CSafeDumper):
    """Writes no aliases, and texts of several lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.CSafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def write_bundle(
    out: Path, version: str, *, image: str = "", channel: str = "alpha", replaces: str | None = None
) -> None:
    """Writes a bundle into a folder, which is emptied first.

    Args:
        out: the folder.
        version: of bundle and product.
        image: of the operator; empty: as manifests/ names it.
        channel: that the bundle is in, which is also the default one.
        replaces: the version that this one upgrades.

    Raises:
        ValueError: `image` is not the name of an image.
    """
    if image and (IMAGE_NAME.match(image) is None or IMAGE.match(image)):
        raise ValueError(f"--image={image}: give registry/name:tag, or registry/name@sha256:digest")
    shutil.rmtree(out, ignore_errors=True)
    (out / "manifests").mkdir(parents=True)
    (out / "metadata").mkdir()
    found = sorted_objects()
    csv = cluster_service_version(found, version, image=image, replaces=replaces)
    _write(out / "manifests" / f"{PACKAGE}.clusterserviceversion.yaml", csv)
    for key, obj in found.carried.items():
        _write(out / "manifests" / _file_of(key), _without_namespace(obj))
    _write(out / "metadata" / "annotations.yaml", {"annotations": annotations(channel)})
    (out / "bundle.Dockerfile").write_text(_dockerfile(channel), encoding="utf-8")
    _write_all(out / "beside.yaml", found.beside)


def annotations(channel: str) -> dict[str, str]:
    """Returns the metadata of the bundle: annotations of the folder, labels of the image."""
    return {
        f"{_PREFIX}.mediatype.v1": MEDIA_TYPE,
        f"{_PREFIX}.manifests.v1": "manifests/",
        f"{_PREFIX}.metadata.v1": "metadata/",
        f"{_PREFIX}.package.v1": PACKAGE,
        f"{_PREFIX}.channels.v1": channel,
        f"{_PREFIX}.channel.default.v1": channel,
    }


def _dockerfile(channel: str) -> str:
    labels = "".join(f"LABEL {name}={value}\n" for name, value in annotations(channel).items())
    return f"FROM scratch\n\n{labels}\nCOPY manifests /manifests/\nCOPY metadata /metadata/\n"


def _without_namespace(obj: Any) -> dict[str, Any]:
    """OLM puts what is namespaced into the namespace of the operator, and refuses manifests that name one."""
    meta = {name: value for name, value in obj["metadata"].items() if name != "namespace"}
    return {**obj, "metadata": meta}


def _file_of(key: ObjectKey) -> str:
    _, kind, _, name = key
    return f"{name}.crd.yaml" if kind == "CustomResourceDefinition" else f"{name}.{kind.lower()}.yaml"


def _write(path: Path, obj: Any) -> None:
    path.write_text(yaml.dump(obj, Dumper=_Dumper, sort_keys=False, width=1_000_000, allow_unicode=True), "utf-8")


def _write_all(path: Path, objects: Objects) -> None:
    text = yaml.dump_all(
        list(objects.values()),
        Dumper=_Dumper,
        sort_keys=False,
        width=1_000_000,
        allow_unicode=True,
        explicit_start=True,
    )
    path.write_text(text, encoding="utf-8")
