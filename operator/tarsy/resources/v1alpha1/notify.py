"""Notification targets of a chain or an alert route.

Decision: credentials named here (a token, a signing key) are read in the namespace of the object that names them, with
that namespace's rights, like every other Secret. Notifications go to the targets of this object's author, regardless of
who ran the chain. (The field is `when` and not `on`, which YAML 1.1, and so kubectl, reads as true.)
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.schema import HINTS, HttpUrl, LabelName, Model, Unique, ValidationRule
from tarsy.resources.v1alpha1.common import SecretKeyRef
from tarsy.resources.v1alpha1.transport import Header

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


REQUEST_VALUES = ("phase", "namespace", "name", "alertType", "chain", "summary", "confidence", "command", "url")
"""Names of the values of a run that a request may contain."""

REQUEST_PLACEHOLDER: Final = r"\{\{(" + "|".join(REQUEST_VALUES) + r"|alert:/[^{}\s]*)\}\}"
"""Pattern of a placeholder in a request; its group is the name of the value."""

REQUEST_URL = r"^https?://[^\s/?#{}]+([/?]([^\s{}#]|" + REQUEST_PLACEHOLDER + r")*)?$"
REQUEST_BODY = r"^([^{]|\{[^{]|" + REQUEST_PLACEHOLDER + r")*$"
_HINT = "{{" + "}}, {{".join(REQUEST_VALUES) + "}} or {{alert:/POINTER}}"
HINTS[REQUEST_URL] = f"must be a URL with host; after it, it may contain {_HINT}"
HINTS[REQUEST_BODY] = f"may contain no other placeholders than {_HINT}"


class RequestTarget(Model):
    """A request to the API of another system, such as a comment on the incident that an alert came from."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=2048, pattern=REQUEST_URL)] = Field(
        description="URL of the request. Its path and query may contain placeholders: values of the run "
        "({{namespace}}) and of the alert, if that is JSON ({{alert:/event/data/id}}, a JSON pointer). As for "
        "webhooks, it must be a public address or a Service in this namespace, unless the administrator allows more."
    )
    method: Literal["POST", "PUT", "PATCH"] = Field(default="POST", description="HTTP method.")
    headers: Annotated[tuple[Header, ...], Field(max_length=8), Unique("name")] = Field(
        default=(), description="Headers, such as Authorization from a Secret that contains its whole value."
    )
    body: Annotated[str, StringConstraints(min_length=2, max_length=8192, pattern=REQUEST_BODY)] = Field(
        description="JSON of the request. Its texts may contain placeholders: phase, namespace, name, alertType, "
        "chain, summary, confidence, command, url, and values of the alert ({{alert:/POINTER}})."
    )


class NotifyTarget(Model):
    """A notification target and its trigger. Set exactly one of slack, webhook and request."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "[has(self.slack), has(self.webhook), has(self.request)].filter(x, x).size() == 1",
            "set exactly one of slack, webhook and request",
            lambda self: [self.slack, self.webhook, self.request].count(None) == 2,
        ),
    )

    name: LabelName = Field(description="Name of the target, unique in this object.")
    when: Annotated[tuple[Occasion, ...], Field(min_length=1, max_length=5), Unique()] = Field(
        default=("Succeeded", "Failed", "TimedOut"), description="Events that trigger a notification."
    )
    slack: SlackTarget | None = Field(default=None, description="Slack channel.")
    webhook: WebhookTarget | None = Field(default=None, description="URL that receives signed JSON.")
    request: RequestTarget | None = Field(default=None, description="Request to the API of another system.")


Notify = Annotated[tuple[NotifyTarget, ...], Field(max_length=8), Unique("name")]
