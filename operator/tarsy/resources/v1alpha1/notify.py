"""Whom a chain or a route tells how its investigations end.

Decision: what is named here (a token, a signing key) is read in the namespace of the object that names it, with that
namespace's rights, like every other Secret; what is told goes where this object's author says, whoever ran the chain.
(The field is `when` and not `on`, which YAML 1.1, and so kubectl, reads as true.)
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.schema import HttpUrl, LabelName, Model, Rule, Unique
from tarsy.resources.v1alpha1.common import SecretKeyRef

Occasion = Literal["Started", "Succeeded", "Failed", "TimedOut", "Cancelled"]
SLACK_CHANNEL = "^#?[A-Za-z0-9][A-Za-z0-9._-]*$"


class SlackTarget(Model):
    """A channel of Slack, written to by a bot."""

    channel: Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=SLACK_CHANNEL)] = Field(
        description="The channel's id (C0123456789), or its name. The bot must be in it."
    )
    token_secret_ref: SecretKeyRef = Field(description="The bot's token (xoxb-), which may chat:write.")
    api_url: HttpUrl = Field(
        default="https://slack.com/api", description="Base URL of Slack's Web API, where it is another one."
    )


class WebhookTarget(Model):
    """A URL that takes signed JSON, as Standard Webhooks say."""

    url: HttpUrl = Field(
        description="Where it is sent, by POST. In a cluster: a public address, or a Service of this namespace, unless "
        "the administrator allows more (tarsy run --url-host)."
    )
    signing_secret_ref: SecretKeyRef = Field(
        description="The key of the signature: whsec_ and base64, or any text. The receiver must know it too."
    )


class NotifyTarget(Model):
    """One that is told, and of what; exactly one of slack and webhook."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.slack) != has(self.webhook)",
            "set exactly one of slack and webhook",
            lambda self: (self.slack is None) != (self.webhook is None),
        ),
    )

    name: LabelName = Field(description="Its name, unique in this object.")
    when: Annotated[tuple[Occasion, ...], Field(min_length=1, max_length=5), Unique()] = Field(
        default=("Succeeded", "Failed", "TimedOut"), description="The ends, or the start, that it is told of."
    )
    slack: SlackTarget | None = Field(default=None, description="A channel of Slack.")
    webhook: WebhookTarget | None = Field(default=None, description="A URL that takes signed JSON.")


Notify = Annotated[tuple[NotifyTarget, ...], Field(max_length=8), Unique("name")]
