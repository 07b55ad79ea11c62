"""Decides whether a question from Slack is asked, and makes its ChatMessage.

The operator asks in the name of the person whom the administrator's list names. It does not impersonate: it asks
SubjectAccessReview what that person may do, and creates the ChatMessage with them as author, for which it needs the
verb `attribute` on ChatMessages (component `slack`).
"""

from uuid import UUID

from tarsy.controllers.slack.mentions import MOST_QUESTION, decides
from tarsy.controllers.slack.replies import NOT_DECIDED_HERE, NOTHING_ASKED
from tarsy.kube.access import ResourceAttributes, Subject, may
from tarsy.kube.client import ApiError, KubeClient
from tarsy.record.reading.conditions import phase
from tarsy.record.run import InvestigationRecord, State
from tarsy.resources.meta import API_VERSION, GROUP
from tarsy.resources.v1alpha1 import ChatMessage, Investigation
from tarsy.resources.v1alpha1.common import Author
from tarsy.store.slack import SlackQuestion

USER_ANNOTATION = "tarsy.dev/slack-user"
MESSAGE_ANNOTATION = "tarsy.dev/slack-message"
MOST_OPEN = 5
"""Questions of one person that wait for their answers."""

_CONFLICT = 409


class NotAsked(Exception):
    """The question is not asked; the message says why, to the person who asked."""


def check_question(question: SlackQuestion, about: InvestigationRecord) -> str:
    """Returns the text of a question that can be asked.

    Raises:
        NotAsked: it is empty, too long or a decision, or the investigation has no answers to give.
    """
    text = question.question or ""
    if not text:
        raise NotAsked(NOTHING_ASKED)
    if len(text) > MOST_QUESTION:
        raise NotAsked(f"Your question has {len(text)} characters; {MOST_QUESTION} at most. Shorten it.")
    if decides(text):
        raise NotAsked(NOT_DECIDED_HERE)
    name = f"Investigation {about.namespace}/{about.name}"
    if not about.state.finished:
        raise NotAsked(f"{name} is {phase(about)}. Ask when it has finished.")
    if about.state is State.CANCELLED:
        raise NotAsked(f"{name} was cancelled, so there is nothing to ask about.")
    return text


async def check_rights(client: KubeClient, author: Author, about: InvestigationRecord) -> None:
    """Checks that a person may ask about an investigation, as the API server says.

    Raises:
        NotAsked: they may not; names each missing right.
        ApiError: the API server did not say; that is never a yes.
    """
    subject = Subject(author.username, author.uid or "", author.groups)
    place, name = about.namespace, about.name
    rights = (
        ResourceAttributes("create", GROUP, ChatMessage.PLURAL, namespace=place),
        ResourceAttributes("get", GROUP, Investigation.PLURAL, namespace=place, name=name),
        ResourceAttributes("get", f"record.{GROUP}", Investigation.PLURAL, "timeline", namespace=place, name=name),
        ResourceAttributes("use", GROUP, "chains", namespace=about.chain_namespace, name=about.chain),
    )
    missing = [right for right in rights if not await may(client, subject, right)]
    if missing:
        lacks = "; ".join(_described(right) for right in missing)
        raise NotAsked(
            f"{author.username} may not ask about Investigation {place}/{name}: no permission to {lacks}. Ask your "
            "administrator for a role that has it, such as tarsy-investigator."
        )


async def create_message(
    client: KubeClient, question: SlackQuestion, text: str, author: Author, about: InvestigationRecord
) -> UUID:
    """Makes the ChatMessage of a question, once for a message in Slack however often this is called; returns its uid.

    Raises:
        NotAsked: the investigation has no object any more, or the API server refused the ChatMessage.
        ApiError: the API server could not be reached.
    """
    place = about.namespace
    found = await client.find(Investigation.KIND, place, about.name)
    if found is None or found["metadata"].get("uid") != str(about.id):
        raise NotAsked(f"Investigation {place}/{about.name} is deleted, so it cannot be asked about.")
    body = {
        "apiVersion": API_VERSION,
        "kind": ChatMessage.KIND,
        "metadata": {
            "name": message_name(question.id),
            "namespace": place,
            "annotations": {
                USER_ANNOTATION: question.person,
                MESSAGE_ANNOTATION: f"{question.channel}/{question.ts}",
            },
        },
        "spec": {
            "investigationRef": {"name": about.name},
            "question": text,
            "author": author.to_dict(),
            "via": "Slack",
        },
    }
    try:
        made = await client.create(body)
    except ApiError as error:
        if error.transient:
            raise
        if error.status != _CONFLICT:
            raise NotAsked(f"The Kubernetes API refused your question: {error.message}") from error
        made = await client.get(ChatMessage.KIND, place, message_name(question.id))
        if made["spec"].get("via") != "Slack":
            raise NotAsked(f"ChatMessage {place}/{message_name(question.id)} exists and is not yours.") from error
    return UUID(made["metadata"]["uid"])


def message_name(question: UUID) -> str:
    """Returns the name of the ChatMessage of a question: always the same."""
    return f"slack-{question.hex[:24]}"


def _described(right: ResourceAttributes) -> str:
    resource = f"{right.resource}.{right.group}" + (f"/{right.subresource}" if right.subresource else "")
    return f"{right.verb} {resource} in namespace {right.namespace}"
