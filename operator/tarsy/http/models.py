"""Defines base classes of the API's models, and the paths that clients and servers share.

Imports nothing but pydantic, so a client can use the models of the API without loading a server.
"""

from typing import Final

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

PRODUCT_GROUP: Final = "tarsy.dev"
"""API group of the custom resources."""
RECORD_GROUP: Final = "record.tarsy.dev"
"""API group of the aggregated API."""
RECORD_VERSION: Final = "v1alpha1"
DIRECT_PREFIX: Final = "/api/v1"
AGGREGATED_PREFIX: Final = f"/apis/{RECORD_GROUP}/{RECORD_VERSION}"


class View(BaseModel):
    """Base of response bodies: frozen, camelCase."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)


class Query(BaseModel):
    """Base of query parameters: camelCase; unknown ones are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


class Body(BaseModel):
    """Base of request bodies: camelCase; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)
