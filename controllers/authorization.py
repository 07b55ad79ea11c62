"""Whether an author may use what an investigation, or a question about one, uses: asked when it is to be accepted.

Watches: nothing of its own. Decides: whether the author has the verb `use` on the Chain and on each MCPServer that the
alert brought itself, each in its own namespace (DESIGN section 7). Writes: nothing.

The Kubernetes API is asked each time, so a right that is given later counts at the next look; one that is taken away
stops no run that was accepted. Where nobody stamps authors (no admission is installed) there is nobody to ask
about, and whoever may create an object may run it, unless authors are required.
"""

from collections.abc import Iterable

from tarsy.controllers.cache import Key
from tarsy.kube.access import UNDECIDED, Attributes, Subject, may
from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.meta import GROUP
from tarsy.resources.v1alpha1 import KINDS
from tarsy.resources.v1alpha1.common import Author

UNKNOWN = (
    "AuthorUnknown",
    "spec.author: nobody stamped who created this, and authors are required; with admission installed "
    "(manifests/base/admission.yaml), create it again",
)
"""Why an object without an author is refused where authors are required: reason and message."""


async def refusal(
    author: Author | None, used: Iterable[Key], client: KubeClient, *, required: bool
) -> tuple[str, str] | None:
    """Why the author may not, as reason and message that name verb, resource, object and remedy; None when they may.

    Args:
        author: as stamped; None where nobody did.
        used: the Chain, the MCPServers.
        client: as somebody who may create SubjectAccessReviews.
        required: whether there must be an author.

    Raises:
        ApiError: nobody could say; that is never a yes.
    """
    if author is None:
        return UNKNOWN if required else None
    subject = Subject(author.username, author.uid or "", author.groups)
    problems = [await _problem(subject, key, client) for key in used]
    refused = [problem for problem in problems if problem]
    return ("Forbidden", "; ".join(refused)) if refused else None


def named(author: Author | None) -> str:
    """Who, at the beginning of a sentence."""
    return author.username if author else "Somebody (no admission stamped who)"


def _use(key: Key) -> Attributes:
    return Attributes("use", GROUP, KINDS[key.kind].PLURAL, namespace=key.namespace, name=key.name)


async def _problem(subject: Subject, key: Key, client: KubeClient) -> str | None:
    doubt = ""
    try:
        if await may(client, subject, _use(key)):
            return None
    except ApiError as error:
        if error.reason != UNDECIDED:
            raise
        doubt = f" ({error.message})"  # such as a binding to a role that is not there: no yes, and told
    return (
        f"spec.author: {subject.username} may not use {key}{doubt}; in namespace {key.namespace} bind them a role with "
        f"the verb use on {KINDS[key.kind].PLURAL}.{GROUP} {key.name}, such as tarsy-investigator"
    )
