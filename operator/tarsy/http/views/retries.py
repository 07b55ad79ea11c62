"""Models of an investigation that is run again over the API."""

from typing import Annotated

from pydantic import Field

from tarsy.http.models import Body, View
from tarsy.resources.schema import ObjectName


class RetryRequest(Body):
    """Differences of the new investigation from the first one."""

    chain: Annotated[ObjectName, Field(description="Name of another chain. The same when omitted.")] | None = None
    llm_provider: (
        Annotated[
            ObjectName,
            Field(
                description="Name of the LLMProvider, in the namespace of the chain, that all agents use. The same "
                "when omitted."
            ),
        ]
        | None
    ) = None
    name: Annotated[ObjectName, Field(description="Name of the Investigation. Generated when omitted.")] | None = None


class StartedRetry(View):
    """An investigation that was created."""

    namespace: str
    name: str
    uid: str
    retry_of: str = Field(description="Name of the investigation that it runs again.")
