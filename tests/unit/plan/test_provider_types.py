"""Every provider type of the CRD is described everywhere: its record, its clients, its label, its packages."""

import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

from tarsy.llm.providers import PROVIDER_SPECS, gen_ai_provider_name
from tarsy.observe import metric_table
from tarsy.plan.model import Backend
from tarsy.plan.provider_types import PROVIDER_TYPES, UnsupportedProviderType, provider_type
from tarsy.resources.parse import InvalidResource, parse_object
from tarsy.resources.v1alpha1.llm_provider import LLMProviderSpec, ProviderTypeName

NAMES = get_args(ProviderTypeName)
PROJECT = Path(__file__).parents[3] / "pyproject.toml"


def test_every_type_of_the_crd_has_a_record_clients_and_a_label() -> None:
    assert tuple(PROVIDER_TYPES) == NAMES
    assert tuple(PROVIDER_SPECS) == NAMES
    assert metric_table.PROVIDER_TYPE.values == (*NAMES, metric_table.OTHER)


@pytest.mark.parametrize("name", NAMES)
def test_a_type_has_a_client_for_each_backend_that_a_plan_can_name(name: str) -> None:
    type, spec = provider_type(name), PROVIDER_SPECS[name]
    assert spec.type is type
    assert set(spec.clients) == {*type.backends, type.default_client}
    assert type.combining_type is None or provider_type(type.combining_type).combines_tools("gemini-3-pro")


def test_a_package_of_a_type_is_in_an_extra() -> None:
    extras: dict[str, list[str]] = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    packages = [client.package for spec in PROVIDER_SPECS.values() for client in spec.clients.values()]
    for package in filter(None, packages):
        name = re.sub("[._]", "-", package.module)
        assert any(wanted.startswith(f"{name}>=") for wanted in extras[package.extra])


def test_the_client_that_only_some_types_have_is_chosen_by_those_only() -> None:
    native = [name for name, spec in PROVIDER_SPECS.items() if Backend.OPENAI_NATIVE in spec.clients]
    rules = [rule.cel for rule in LLMProviderSpec.RULES]
    (rule,) = [rule for rule in rules if "openai-native" in rule]
    assert rule.endswith(f"|| self.type == '{native[0]}'") and native == ["openai"]


def test_traces_name_a_type_as_the_conventions_do_and_an_unknown_one_as_it_is() -> None:
    assert gen_ai_provider_name("vertexai") == "gcp.vertex_ai"
    assert gen_ai_provider_name("abacus") == "abacus"


def test_an_unsupported_type_names_the_field_and_the_supported_types() -> None:
    with pytest.raises(UnsupportedProviderType) as raised:
        provider_type("abacus")
    message = str(raised.value)
    assert message.startswith("spec.type 'abacus' is not supported; use 'openai' (OpenAI and ")
    assert all(f"{name!r} ({provider_type(name).models})" in message for name in NAMES)


def test_a_stored_object_of_a_type_of_another_version_is_invalid_and_its_condition_names_the_supported_types() -> None:
    stored: dict[str, Any] = {
        "apiVersion": "tarsy.dev/v1alpha1",
        "kind": "LLMProvider",
        "metadata": {"namespace": "shop", "name": "model"},
        "spec": {"type": "abacus", "model": "m", "beads": {"rows": 10}},
    }
    with pytest.raises(InvalidResource) as raised:
        parse_object(stored)
    names = ", ".join(f"'{name}'" for name in NAMES[:-1])
    assert f"spec.type: must be {names} or '{NAMES[-1]}'" in str(raised.value)
