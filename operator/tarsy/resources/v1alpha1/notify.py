"""Notification targets of a chain or an alert route.

Decision: credentials named here (a token, a signing key) are read in the namespace of the object that names them, with
that namespace's rights, like every other Secret. Notifications go to the targets of this object's author, regardless of
who ran the chain. (The field is `when` and not `on`, which YAML 1.1, and so kubectl, reads as true.)
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.schema import HttpUrl, LabelName, Model, Unique, ValidationRule
from tarsy.resources.v1alpha1.common import SecretKeyRef

Occasion = Literal["Started", "Succeeded", "Failed", "TimedOut", "Cancelled"]
SLACK_CHANNEL = "^#?[A-Za-z0-9][A-Za-z0-9._-]*$"


class SlackTarget(Model):
    """A Slack channel that a bot posts to."""

    channel: Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=SLACK_CHANNEL)] = Field(
        description="Channel id (C0123456789) or name. The bot must be a member."
    )
    token_secret_ref: SecretKeyRef = Field(
        description="Secret key with the bot token (xoxb-), which needs the scope chat:write."
    )
    api_url: HttpUrl = Field(default="https://slack.com/api", description="Base URL of Slack's Web API.")


class WebhookTarget(Model):
    """A URL that receives signed JSON, as specified by Standard Webhooks."""

    url: HttpUrl = Field(
        description="URL that receives the POST requests. In a cluster, it must be a public address or a Service in "
        "this namespace, unless the administrator allows more (tarsy run --url-host)."
    )
    signing_secret_ref: SecretKeyRef = Field(
        description="Secret key with the signing key: whsec_ followed by base64, or any text. The receiver needs the "
        "same key."
    )


class NotifyTarget(Model):
    """A notification target and its trigger. Set exactly one of slack or webhook."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "has(self.slack) != has(self.webhook)",
            "set exactly one of slack and webhook",
            lambda self: (self.slack is None) != (self.webhook is None),
        ),
    )

    name: LabelName = Field(description="Name of the target, unique in this object.")
    when: Annotated[tuple[Occasion, ...], Field(min_length=1, max_length=5), Unique()] = Field(
        default=("Succeeded", "Failed", "TimedOut"), description="Events that trigger a notification."
    )
    slack: SlackTarget | None = Field(default=None, description="Slack channel.")
    webhook: WebhookTarget | None = Field(default=None, description="URL that receives signed JSON.")


Notify = Annotated[tuple[NotifyTarget, ...], Field(max_length=8), Unique("name")]
