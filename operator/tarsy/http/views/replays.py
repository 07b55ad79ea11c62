"""Models of a replay that is started over the API."""

from typing import Annotated

from pydantic import Field

from tarsy.http.models import Body, View
from tarsy.resources.schema import ObjectName
from tarsy.resources.v1alpha1.investigation import OnMiss, ReplayOverrides


class ReplayRequest(Body):
    """Differences of a replay from the recorded run, as in `spec.replay` of an Investigation."""

    overrides: ReplayOverrides | None = Field(
        default=None, description="Chain and LLMProvider of the replay. The recorded ones when omitted."
    )
    on_miss: OnMiss | None = Field(
        default=None,
        description="Answer to a tool call that is not recorded. Refuse: an error. Live: the tool server is asked, if "
        "the tool is known to be read-only. Refuse when omitted.",
    )
    seed: Annotated[int, Field(ge=0, le=2_147_483_647)] | None = Field(
        default=None,
        description="Number of this sample among several replays of the same record. It has no effect on the replay.",
    )
    name: Annotated[ObjectName, Field(description="Name of the Investigation. Generated when omitted.")] | None = None


class StartedReplay(View):
    """A replay that was created."""

    namespace: str
    name: str
    uid: str
    replay_of: str = Field(description="Name of the recorded investigation.")
