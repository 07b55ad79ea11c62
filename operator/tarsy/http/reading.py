"""Validates path, query and body of a request by pydantic models.

Decision: an error names the parameter or field and the allowed values, but never repeats the received value, which may
be long or secret.
"""

import asyncio
import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin

from aiohttp import web
from multidict import MultiMapping
from pydantic import BaseModel, TypeAdapter, ValidationError

from tarsy.http.bodies import BodyRoom, demand_depth, read_whole
from tarsy.http.errors import BadRequest, UnsupportedMediaType
from tarsy.http.route import DEFAULT_BODY_BYTES, PATH_PARAMETERS

_SHOWN_ERRORS = 5
_LARGE = 65_536
_LISTS = (list, tuple, set, frozenset)


def read_path(found: Mapping[str, str]) -> dict[str, str]:
    """Validates the parameters of a path.

    Raises:
        BadRequest: a parameter is invalid.
    """
    for name, value in found.items():
        try:
            TypeAdapter(PATH_PARAMETERS[name]).validate_python(value)
        except ValidationError as error:
            raise BadRequest(f"{name} in the path: {describe_errors(error)}") from None
    return dict(found)


def read_query(model: type[BaseModel] | None, found: MultiMapping[str]) -> BaseModel | None:
    """Validates the query parameters.

    Args:
        model: model of the route; None: no parameters are allowed.
        found: the received parameters.

    Raises:
        BadRequest: a parameter is unknown, invalid, or repeated although it takes one value.
    """
    fields = model.model_fields if model else {}
    names = {field.alias or name: field.annotation for name, field in fields.items()}
    values: dict[str, Any] = {}
    for name in dict.fromkeys(found):
        if name not in names:
            known = f"known parameters: {', '.join(sorted(names))}" if names else "this path takes none"
            raise BadRequest(f"query parameter {_short(name)} is unknown; {known}")
        given = found.getall(name)
        if any("\0" in value for value in given):
            raise BadRequest(f"query parameter {name} contains a NUL character")
        if _takes_many(names[name]):
            values[name] = given
        elif len(given) == 1:
            values[name] = given[0]
        else:
            raise BadRequest(f"query parameter {name} is given {len(given)} times; give it once")
    if model is None:
        return None
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise BadRequest(f"query parameter {describe_errors(error)}") from None


async def read_body(
    model: type[BaseModel], request: web.Request, room: BodyRoom, *, group: str = "", limit: int = DEFAULT_BODY_BYTES
) -> BaseModel:
    """Reads and validates a JSON body.

    Args:
        model: model of the route.
        request: the request.
        room: bounds concurrent reading.
        group: namespace of the request; empty: none.
        limit: maximum size in bytes.

    Raises:
        UnsupportedMediaType: the content type is not JSON.
        TooLarge: the body is larger than `limit`.
        BadRequest: the body is not UTF-8 or JSON, nests too deep, or does not fit the model.
        HttpError: the body was not received in time, or was displaced by others.
    """
    if request.content_type not in ("application/json", "application/octet-stream"):  # the latter: no header
        raise UnsupportedMediaType("the body must be JSON: send Content-Type: application/json")
    content = await read_whole(room, request, group, limit)
    if len(content) > _LARGE:
        return await asyncio.to_thread(_parsed, model, content)
    return _parsed(model, content)


def _parsed(model: type[BaseModel], content: bytes) -> BaseModel:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"the body is not valid UTF-8 (byte {error.start})") from None
    demand_depth(content)
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise BadRequest(f"body: {describe_errors(error)}") from None


def read_value(model: type[BaseModel], value: Mapping[str, Any]) -> BaseModel:
    """Validates a body that was parsed already.

    Args:
        model: model of the route.
        value: the body, by the names of the API.

    Raises:
        BadRequest: the body does not fit the model.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise BadRequest(f"body: {describe_errors(error)}") from None


def describe_errors(error: ValidationError) -> str:
    """Formats validation errors by field, without the values."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    parts = []
    for found in errors[:_SHOWN_ERRORS]:
        where = ".".join(_short(str(step)) for step in found["loc"])
        parts.append(f"{where}: {found['msg']}" if where else found["msg"])
    more = len(errors) - _SHOWN_ERRORS
    return "; ".join(parts) + (f"; and {more} more" if more > 0 else "")


def _short(name: str) -> str:
    """Truncates a name that the caller chose, and replaces unprintable characters."""
    return "".join(c if c.isprintable() else "?" for c in name[:64])


def _takes_many(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, types.UnionType):
        return any(_takes_many(part) for part in get_args(annotation))
    return annotation in _LISTS or get_origin(annotation) in _LISTS
