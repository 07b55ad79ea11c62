"""Creates the link that opens the web UI of `tarsy dev` and `tarsy demo` signed in.

Decision: the link contains a code that is valid once and on this machine only, never a token, and it follows `#`, so
that no server and no log sees it. The browser then acts as the ServiceAccount `you`, with the rights of the local user.
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
    """A link that signs in once. `environment` contains the variables that the operator needs at its start."""

    url: str
    code: str
    environment: dict[str, str]

    def to(self, path: str = "/") -> str:
        """Returns the URL that signs in and shows `path` of the web UI."""
        return f"{self.url}/#/sign-in/{self.code}{path}"

    def sentence(self, path: str = "/") -> str:
        """Returns how to open the web UI, and how to sign in without the link."""
        if not is_built():
            return "The web UI is not built: run `make page` (needs node)."
        again = f"kubectl create token {_ACCOUNT} -n {SYSTEM}"
        return f"Watch it in a browser (the link signs you in once; later use {again}):\n\n    {self.to(path)}"


async def make_link(stack: Stack) -> SignInLink:
    """Creates a link to the web UI of an operator that is started afterwards."""
    account = {"name": _ACCOUNT, "namespace": SYSTEM}
    await put(stack.client, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    # Earlier versions bound the account to cluster-admin, which a kept folder still has.
    await stack.client.delete("ClusterRoleBinding", None, f"{SYSTEM}-{_ACCOUNT}")
    await let_work(stack.client, "tarsy-page-of-this-machine", {"kind": "ServiceAccount", **account})
    code, file = secrets.token_urlsafe(24), stack.folder / "sign-in.json"
    write_code(file, code, await stack.client.create_token(SYSTEM, _ACCOUNT, seconds=_TOKEN_SECONDS))
    return SignInLink(stack.http_url, code, {"TARSY_SIGN_IN_FILE": str(file)})
