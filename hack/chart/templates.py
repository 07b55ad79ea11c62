"""Turns an object into the text of a template.

Decision: places are marked in the object by words that occur in no manifest, the object is dumped as YAML, and the
words become Go template expressions. So braces that an object has itself can be escaped in between.
"""

import copy
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

IMAGE: Final = re.compile(r"^tarsy-operator(:\S+)?$")
"""The image of this project, as manifests/ names it."""

_DATABASE: Final = "tarsy-database"
_MARK: Final = re.compile(r"\bTARSYMARK(\d+)X\b")
_LINE_MARK: Final = re.compile(r"^( *)(- )?TARSYLINE(\d+)X(: null)?$", re.MULTILINE)
FIXED_IDENTITY: Final = ("runAsUser", "runAsGroup", "fsGroup")


@dataclass(frozen=True, slots=True)
class Names:
    """The words that templates replace.

    Args:
        namespaces: expression for each namespace that manifests/ names.
        pods: key of the values for each Deployment whose pods have settings; others have `tools`.
        env: expression for the value of each variable that the values set.
    """

    namespaces: Mapping[str, str]
    pods: Mapping[str, str]
    env: Mapping[str, str] = field(default_factory=dict)


class _Dumper(yaml.CSafeDumper):
    """Writes no aliases: an expression would be anchored once and missing in copies."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.CSafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value and not re.search(r"[ \t]\n|[^\n\x20-\x7e]", value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


class Template:
    """The template of one object.

    Args:
        names: what is replaced.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._expressions: list[str] = []
        self._namespace = re.compile(
            rf"(?<![A-Za-z0-9-])({'|'.join(map(re.escape, names.namespaces))})(?![A-Za-z0-9-])"
        )

    def of(self, obj: Mapping[str, Any]) -> str:
        """Returns the text for an object."""
        found = copy.deepcopy(dict(obj))
        if found["kind"] == "CustomResourceDefinition":
            self._keep(found)
        else:
            found = self._replaced(found)
            if found["kind"] == "Deployment":
                self._pod_settings(found)
            if "config.yaml" in found.get("data", {}):
                settings = _raw(found["data"]["config.yaml"])
                found["data"]["config.yaml"] = self._marked(
                    f'{{{{ include "tarsy.config" (list $ (tpl {settings} $)) | quote }}}}'
                )
        text = yaml.dump(found, Dumper=_Dumper, sort_keys=False, width=1_000_000, allow_unicode=True)
        escaped = text.replace("{{", '{{ "{{" }}')
        lines = _LINE_MARK.sub(lambda at: self._line(at), escaped)
        return _MARK.sub(lambda at: self._resolved(int(at[1])), lines)

    def _resolved(self, at: int) -> str:
        return _MARK.sub(lambda inner: self._resolved(int(inner[1])), self._expressions[at])

    def _line(self, at: re.Match[str]) -> str:
        expression = self._resolved(int(at[3]))
        return expression.replace("INDENT", str(len(at[1])))

    def _marked(self, expression: str) -> str:
        self._expressions.append(expression)
        return f"TARSYMARK{len(self._expressions) - 1}X"

    def _whole_line(self, expression: str) -> str:
        """A key or an entry that becomes lines; INDENT is where they begin."""
        self._expressions.append(expression)
        return f"TARSYLINE{len(self._expressions) - 1}X"

    def _replaced(self, value: Any) -> Any:
        match value:
            case dict():
                return {key: self._replaced(one) for key, one in value.items()}
            case list():
                return [self._replaced(one) for one in value]
            case str():
                return self._in_text(value)
            case _:
                return value

    def _in_text(self, text: str) -> str:
        if text in self._names.namespaces:  # quoted: a namespace of digits is no number
            return self._marked(f"{{{{ {self._names.namespaces[text]} | quote }}}}")
        return self._namespace.sub(lambda at: self._marked(f"{{{{ {self._names.namespaces[at[1]]} }}}}"), text)

    def _keep(self, crd: dict[str, Any]) -> None:
        """Lets an uninstall keep the kind, and with it everybody's objects."""
        meta = crd["metadata"]
        keep = '"helm.sh/resource-policy" "keep"'
        kept = f"(dict {keep})" if meta.get("annotations") else f'(dict "annotations" (dict {keep}))'
        line = f"{{{{- if .Values.crds.keep }}}}{{{{- toYaml {kept} | nindent INDENT }}}}{{{{- end }}}}"
        meta.get("annotations", meta)[self._whole_line(line)] = None

    def _pod_settings(self, deployment: dict[str, Any]) -> None:
        at = f".Values.{self._names.pods.get(deployment['metadata']['name'], 'tools')}"
        spec = deployment["spec"]
        pod = spec["template"]["spec"]
        if "replicas" in spec and not at.endswith("tools"):
            usual = spec["replicas"]
            spec["replicas"] = self._marked(
                f'{{{{ if kindIs "invalid" {at}.replicas }}}}{usual}{{{{ else }}}}{{{{ {at}.replicas }}}}{{{{ end }}}}'
            )
        meta = spec["template"]["metadata"]
        meta.setdefault("annotations", {})
        empty = not meta["annotations"]
        line = (
            f'{{{{- include "tarsy.podAnnotations" (list $ {at} {"true" if empty else "false"}) | nindent INDENT }}}}'
        )
        if empty:
            del meta["annotations"]
            meta[self._whole_line(line)] = None
        else:
            meta["annotations"][self._whole_line(line)] = None
        pod["securityContext"] = self._marked(
            f'{{{{ include "tarsy.podSecurity" (list $ {_json(pod["securityContext"])}) }}}}'
        )
        pod[self._whole_line(f'{{{{- include "tarsy.pod" (list $ {at}) | nindent INDENT }}}}')] = None
        for container in pod["containers"]:
            if not IMAGE.match(container["image"]):
                continue
            container["image"] = self._marked('{{ include "tarsy.image" . }}')
            container["imagePullPolicy"] = self._marked("{{ .Values.image.pullPolicy }}")
            usual_resources = _json(container["resources"])
            container["resources"] = self._marked(f"{{{{ {at}.resources | default {usual_resources} | toJson }}}}")
            if "env" in container:
                self._variables(container["env"])
                line = f"{{{{- with {at}.extraEnv }}}}{{{{- toYaml . | nindent INDENT }}}}{{{{- end }}}}"
                container["env"].append(self._whole_line(line))
        for volume in pod.get("volumes", ()):
            if volume.get("secret", {}).get("secretName") == _DATABASE:
                volume["secret"]["secretName"] = self._marked("{{ .Values.database.secretName | quote }}")

    def _variables(self, env: list[dict[str, Any]]) -> None:
        for one in env:
            reference = one.get("valueFrom", {}).get("secretKeyRef", {})
            if reference.get("name") == _DATABASE:
                reference["name"] = self._marked("{{ .Values.database.secretName | quote }}")
            if one["name"] in self._names.env:
                one["value"] = self._marked(f"{{{{ {self._names.env[one['name']]} | quote }}}}")


def _json(value: Any) -> str:
    """A value as an expression."""
    return f"(fromJson {_raw(json.dumps(value))})"


def _raw(text: str) -> str:
    """A text as a raw string of Go."""
    if "`" in text:
        raise ValueError("a text with a backtick cannot stand in a template")
    return f"`{text}`"
