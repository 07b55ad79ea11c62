"""What stands in a request, read by models; each error is a sentence that names the parameter or field.

Decision: what is wrong is told without repeating what was sent, which may be long or secret; pydantic's own words say
what is allowed.
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
    """The parameters of a path.

    Raises:
        BadRequest: one is nothing of its kind, so it can name nothing.
    """
    for name, value in found.items():
        try:
            TypeAdapter(PATH_PARAMETERS[name]).validate_python(value)
        except ValidationError as error:
            raise BadRequest(f"{name} in the path: {_said(error)}") from None
    return dict(found)


def read_query(model: type[BaseModel] | None, found: MultiMapping[str]) -> BaseModel | None:
    """The parameters after `?`, by the model of the route.

    Raises:
        BadRequest: one is unknown, wrong, or given twice where one value is wanted.
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
        raise BadRequest(f"query parameter {_said(error)}") from None


async def read_body(
    model: type[BaseModel], request: web.Request, room: BodyRoom, *, group: str = "", limit: int = DEFAULT_BODY_BYTES
) -> BaseModel:
    """The JSON body, by the model of the route.

    Args:
        model: of the route.
        request: whose body it is.
        room: where it is read.
        group: the namespace that it is for.
        limit: bytes that it may have.

    Raises:
        UnsupportedMediaType: it says that it is something else.
        TooLarge: it has more bytes.
        BadRequest: it is no UTF-8, no JSON, nests too deep, or is not what the model says.
        HttpError: it did not come in time, or others came.
    """
    if request.content_type not in ("application/json", "application/octet-stream"):  # the latter: none was given
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
        raise BadRequest(f"body: {_said(error)}") from None


def _said(error: ValidationError) -> str:
    """What is wrong, by field, without the values."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    parts = []
    for found in errors[:_SHOWN_ERRORS]:
        where = ".".join(_short(str(step)) for step in found["loc"])
        parts.append(f"{where}: {found['msg']}" if where else found["msg"])
    more = len(errors) - _SHOWN_ERRORS
    return "; ".join(parts) + (f"; and {more} more" if more > 0 else "")


def _short(name: str) -> str:
    """A name that the caller chose, fit for a message."""
    return "".join(c if c.isprintable() else "?" for c in name[:64])


def _takes_many(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, types.UnionType):
        return any(_takes_many(part) for part in get_args(annotation))
    return annotation in _LISTS or get_origin(annotation) in _LISTS
