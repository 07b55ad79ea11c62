"""Requests short-lived tokens of ServiceAccounts, bound to the empty Secret of one run.

Decision: a token is bound to an object that exists for nothing else (`boundObjectRef`), so deleting it revokes every
token of the run at once, also those that a tool server kept; that they are short-lived is for the case that nobody
deletes it. Workers only ask for tokens, of the accounts that a namespace names; the Secret is made and deleted by the
active controller (`tarsy.controllers.runs.run_secret`): whoever may make and read Secrets in a namespace can come by
tokens of each of its ServiceAccounts, and what talks to models and tools shall not.
"""

from dataclasses import dataclass, field

from tarsy.kube.client import ApiError, KubeClient

LIFETIME_SECONDS = 600
"""The shortest that the Kubernetes API gives."""

_NO_SUCH_RUN = "tarsy-run-none"


def secret_name(run: str) -> str:
    """Returns the name of the Secret that the tokens of a run are bound to.

    Args:
        run: uid of the Investigation or ChatMessage.
    """
    return f"tarsy-run-{run}"


@dataclass(frozen=True, slots=True)
class Issued:
    """Holds a token, its lifetime and its account."""

    text: str = field(repr=False)
    seconds: float
    audiences: frozenset[str]


class TokenProblem(Exception):
    """Raised without a token: `reason` is CamelCase (for a condition), `message` names the object and the remedy."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


async def issue(client: KubeClient, namespace: str, account: str, secret: str, audience: str | None = None) -> Issued:
    """Requests a token.

    Args:
        client: the Kubernetes API.
        namespace: of account and Secret.
        account: name of the ServiceAccount.
        secret: name of the Secret that the token is bound to.
        audience: for whom it is; None: for the Kubernetes API itself.

    Raises:
        TokenProblem: there is none to be had until somebody changes something.
        ApiError: the Kubernetes API failed or could not be reached.
    """
    spec: dict[str, object] = {
        "expirationSeconds": LIFETIME_SECONDS,
        "boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": secret},
    }
    if audience is not None:
        spec["audiences"] = [audience]
    where = f"ServiceAccount {namespace}/{account}"
    try:
        answer = await client.request_token(namespace, account, spec)
    except ApiError as error:
        if error.reason == "Forbidden":
            sentence = (
                f"TARSy may not request tokens of {where}; apply the component `tenant-agents` in namespace "
                f"{namespace}, with that name in its Role tarsy-agent-tokens"
            )
            raise TokenProblem("TokenForbidden", sentence) from error
        if error.reason == "NotFound" and error.message.startswith("serviceaccounts "):
            sentence = f"{where} does not exist; create it, or name another in serviceAccountName of the Agent or stage"
            raise TokenProblem("ServiceAccountMissing", sentence) from error
        if (error.status == 404 and secret in error.message) or "boundObjectRef" in error.message:
            sentence = (
                f"Secret {namespace}/{secret}, which the tokens of this run are bound to, does not exist: the run has "
                f"ended, or TARSy may not create it; apply the component `tenant-agents` in namespace {namespace}"
            )
            raise TokenProblem("RunSecretMissing", sentence) from error
        raise
    granted, status = answer["spec"], answer["status"]
    seconds = float(granted.get("expirationSeconds") or LIFETIME_SECONDS)
    return Issued(str(status["token"]), seconds, frozenset(granted.get("audiences") or ()))


async def why_none(client: KubeClient, namespace: str, account: str) -> TokenProblem | None:
    """Explains why runs will get no tokens of a ServiceAccount; None when they will. No token is created.

    It is asked for one that is bound to a Secret that does not exist, which the API finds out last.

    Args:
        client: the Kubernetes API.
        namespace: of the ServiceAccount.
        name: of the ServiceAccount.

    Raises:
        ApiError: the Kubernetes API failed or could not be reached.
    """
    try:
        await issue(client, namespace, account, _NO_SUCH_RUN)
    except TokenProblem as problem:
        return problem if problem.reason != "RunSecretMissing" else None
    return None
