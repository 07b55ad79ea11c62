"""Obtains the kubeconfig and token with which a tool server's workload acts as an agent's ServiceAccount.

Decision: the active controller asks for the token, because workers write nothing to the Kubernetes API. It is bound to
the empty Secret of the run (`tarsy.kube.tokens`), as all of a run's are, so it ends with the run. When it ends by
itself stands in an annotation beside it, for the controller that comes after a crash; it is renewed at half of its
life, since a kubelet needs more than a minute to show a pod what changed in a Secret.
"""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from tarsy.kube.client import KubeClient
from tarsy.kube.tokens import LIFETIME_SECONDS, TokenProblem, issue, secret_name
from tarsy.mcp.service_account_auth import ClusterAddress, configuration
from tarsy.plan.workload import why_not_lent
from tarsy.runtime.service_account_tokens import cluster_of

ACCOUNT = "tarsy.dev/service-account"
"""Annotation of what acts as an agent's ServiceAccount: its name, for which a label has not room."""

EXPIRES = "tarsy.dev/token-expires"
"""Annotation of a Secret with such a token: when it ends, in seconds since 1970."""

DIRECTORY = "/var/run/tarsy/workload"
"""Where a pod finds its Secret."""

KUBECONFIG_KEY = "kubeconfig"
API_TOKEN_KEY = "kubernetes-token"
RENEW_SECONDS = LIFETIME_SECONDS / 2
"""A token that has no more than this left is replaced."""


@dataclass(frozen=True, slots=True)
class Acting:
    """Holds the credentials of a workload.

    Args:
        account: name of the ServiceAccount.
        namespace: the account's, which is the run's.
        token: for the Kubernetes API.
        expires: when it ends, in seconds since 1970.
        cluster: where the API is.
    """

    account: str
    namespace: str
    token: str = field(repr=False)
    expires: float
    cluster: ClusterAddress

    @property
    def files(self) -> dict[str, str]:
        """Returns the files of its Secret; the kubeconfig names the token's file, so a new token applies at once."""
        text = configuration(self.cluster, self.namespace, Path(DIRECTORY, API_TOKEN_KEY))
        return {KUBECONFIG_KEY: text, API_TOKEN_KEY: self.token}

    @property
    def annotations(self) -> dict[str, str]:
        """Returns the annotations of its Secret."""
        return {ACCOUNT: self.account, EXPIRES: f"{self.expires:.0f}"}


@dataclass(frozen=True, slots=True)
class Lender:
    """Requests the tokens of workloads.

    Args:
        client: the Kubernetes API; workloads are told of it as it is told here.
        library: the library's namespace.
    """

    client: KubeClient
    library: str

    async def lend(self, server: str, at: str, run: UUID, namespace: str, account: str, now: float) -> Acting:
        """Obtains the credentials of a workload of one run.

        Args:
            server: name of the MCPServer.
            at: its namespace, where the workload is.
            run: uid of the Investigation or ChatMessage.
            namespace: the run's, and of the account.
            account: name of the ServiceAccount.
            now: seconds since 1970.

        Raises:
            TokenProblem: there is no token to be had, or not for a workload there, until somebody changes something.
            ApiError: the Kubernetes API failed or could not be reached.
            OpenFailed: the certificates of the Kubernetes API cannot be read.
        """
        if why := why_not_lent(server, at, namespace, self.library):
            raise TokenProblem("TokenNotLent", why)
        cluster = await cluster_of(self.client)()
        issued = await issue(self.client, namespace, account, secret_name(str(run)))
        return Acting(account, namespace, issued.text, now + issued.seconds, cluster)


def renewal(acting: Acting) -> dict[str, Any]:
    """Makes the merge patch that puts a new token into a workload's Secret."""
    data = {name: b64encode(text.encode()).decode() for name, text in acting.files.items()}
    return {"metadata": {"annotations": acting.annotations}, "data": data}


def renew_at(secret: Mapping[str, Any]) -> float:
    """Reads when a workload's token is due for renewal, in seconds since 1970; 0 where it is not recorded."""
    try:
        return float((secret["metadata"].get("annotations") or {}).get(EXPIRES, "")) - RENEW_SECONDS
    except ValueError:
        return 0.0
