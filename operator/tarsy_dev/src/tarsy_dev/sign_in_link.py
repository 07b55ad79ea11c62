"""Creates the link that opens the web UI of `tarsy dev` and `tarsy demo` signed in.

Decision: the link holds a code that is good once and on this machine only, never a token, and it stands behind `#`, so
that no server and no log sees it. Whoever opens it acts as the ServiceAccount `you`, with the rights of the
person at this machine.
"""

import secrets
from dataclasses import dataclass

from tarsy.http.authentication.web_ui_session import write_code
from tarsy.http.web_ui import is_built
from tarsy_dev.objects import put
from tarsy_dev.person import let_work
from tarsy_dev.stack import SYSTEM, Stack

_ACCOUNT = "you"
_TOKEN_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class SignInLink:
    """A way in. `environment` is what the operator must be started with."""

    url: str
    code: str
    environment: dict[str, str]

    def to(self, path: str = "/") -> str:
        """The address that signs in and shows `path` of the page."""
        return f"{self.url}/#/sign-in/{self.code}{path}"

    def sentence(self, path: str = "/") -> str:
        """How people open the page, and how they sign in without the link."""
        if not is_built():
            return "The page is not built: `make page` does it, where node is."
        again = f"kubectl create token {_ACCOUNT} -n {SYSTEM}"
        return f"Watch it in a browser (the link signs you in, once; later: {again}):\n\n    {self.to(path)}"


async def make_link(stack: Stack) -> SignInLink:
    """A link to the page of an operator that is started next."""
    account = {"name": _ACCOUNT, "namespace": SYSTEM}
    await put(stack.client, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    # Earlier versions bound the account to cluster-admin, which a kept folder still has.
    await stack.client.delete("ClusterRoleBinding", None, f"{SYSTEM}-{_ACCOUNT}")
    await let_work(stack.client, "tarsy-page-of-this-machine", {"kind": "ServiceAccount", **account})
    code, file = secrets.token_urlsafe(24), stack.folder / "sign-in.json"
    write_code(file, code, await stack.client.create_token(SYSTEM, _ACCOUNT, seconds=_TOKEN_SECONDS))
    return SignInLink(stack.http_url, code, {"TARSY_SIGN_IN_FILE": str(file)})
