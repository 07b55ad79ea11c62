"""The link by which a newcomer opens the page of `tarsy dev` and `tarsy demo`, signed in.

Decision: the link holds a code that is good once and on this machine only, never a token, and it stands behind `#`, so
that no server and no log sees it. Whoever opens it is the administrator of this stack, as whoever has its kubeconfig.
"""

import asyncio
import secrets
from dataclasses import dataclass

import aiohttp

from tarsy.http.page_files import is_built
from tarsy.http.page_session import write_code
from tarsy.local.objects import put
from tarsy.local.stack import SYSTEM, Stack

ACCOUNT = "you"
TOKEN_SECONDS = 86_400
OPEN_SECONDS = 120.0
_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Link:
    """A way in. `environment` is what the operator must be started with."""

    url: str
    code: str
    environment: dict[str, str]

    def to(self, path: str = "/") -> str:
        """The address that signs in and shows `path` of the page."""
        return f"{self.url}/#/sign-in/{self.code}{path}"

    def sentence(self, path: str = "/") -> str:
        """What people are told."""
        if not is_built():
            return "The page is not built: `make page` does it, where node is."
        return f"Watch it in a browser (the link signs you in, once): {self.to(path)}"


async def make_link(stack: Stack) -> Link:
    """A link to the page of an operator that is started next."""
    account = {"name": ACCOUNT, "namespace": SYSTEM}
    await put(stack.client, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{SYSTEM}-{ACCOUNT}"},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", **account}],
    }
    await put(stack.client, binding)
    code, file = secrets.token_urlsafe(24), stack.folder / "sign-in.json"
    write_code(file, code, await stack.client.create_token(SYSTEM, ACCOUNT, seconds=TOKEN_SECONDS))
    return Link(stack.http_url, code, {"TARSY_SIGN_IN_FILE": str(file)})


async def is_open(url: str) -> bool:
    """Whether the HTTP API answers; waited for until it does, for two minutes at most."""
    async with aiohttp.ClientSession() as http:
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                while True:
                    try:
                        async with http.get(f"{url}/health") as answer:
                            return answer.status == 200
                    except aiohttp.ClientError:
                        await asyncio.sleep(0.1)
        except TimeoutError:
            return False
