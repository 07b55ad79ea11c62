"""Generates valid and invalid requests from the OpenAPI document with Schemathesis, and checks the responses."""

import os
from collections.abc import Mapping
from typing import Any

import hypothesis
import requests
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi import checks

from properties import examples

Operation = APIOperation[Any, Any, Any, Any]
EXAMPLES = int(os.environ.get("TARSY_SCHEMATHESIS_EXAMPLES", examples(3).max_examples))
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
CHECKS_OF = {GenerationMode.POSITIVE: CHECKS, GenerationMode.NEGATIVE: [*CHECKS, checks.negative_data_rejection]}
SETTINGS = hypothesis.settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def operations(document: dict[str, Any]) -> list[Operation]:
    """All that the document describes."""
    return [found.ok() for found in schemathesis.openapi.from_dict(document).get_all_operations()]


def ask(operation: Operation, base_url: str, token: str, path: Mapping[str, str]) -> None:
    """Asks for things that there are, for some that there are not, and wrongly.

    Args:
        operation: what is asked.
        base_url: where.
        token: of somebody who may do everything.
        path: the parameters of the path of a thing that there is.
    """
    session = requests.Session()
    session.headers["Authorization"] = token
    for there in (path, None) if path else (None,):
        _ask(operation, GenerationMode.POSITIVE, session, base_url, there)
    if operation.query or operation.body:
        _ask(operation, GenerationMode.NEGATIVE, session, base_url, path)


def _ask(
    operation: Operation,
    mode: GenerationMode,
    session: requests.Session,
    base_url: str,
    path: Mapping[str, str] | None,
) -> None:
    @SETTINGS
    @hypothesis.given(operation.as_strategy(generation_mode=mode, path_parameters=dict(path) if path else None))
    def asked(case: schemathesis.Case) -> None:
        case.query.pop("follow", None)  # such an answer does not end
        response = case.call(base_url=base_url, session=session)
        case.validate_response(response, checks=CHECKS_OF[mode])

    asked()
