"""Connects type `google`: by the google-native client, or by LangChain's ChatGoogleGenerativeAI."""

import asyncio
import importlib
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from yarl import URL

from tarsy.llm.extras import OptionalPackage
from tarsy.llm.google_native.access import GoogleAccess
from tarsy.llm.google_native.addresses import makers
from tarsy.llm.google_native.provider import GOOGLE_GENAI, GoogleNativeProvider
from tarsy.llm.langchain import ChatModelSettings, ChatSpec, build_in_thread
from tarsy.llm.probe_requests import Probed, ProbeTarget, ask_for_model
from tarsy.llm.protocol import LLMClient
from tarsy.llm.providers.spec import ClientSpec, ProviderSpec, langchain_client
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import Backend, ProviderPlan
from tarsy.plan.provider_types.google import GOOGLE

if TYPE_CHECKING:
    from tarsy.llm.chat import ChatModel

_VERSION = re.compile(r"/v\d+(?:alpha|beta)?\d*\Z")


def _native(
    provider: ProviderPlan, key: str | None, /, *, lent_to: Collection[str], destinations: Destinations
) -> LLMClient:
    return GoogleNativeProvider(provider, key, lent_to=lent_to, destinations=destinations)


async def _open(settings: ChatModelSettings) -> "ChatModel":
    access = GoogleAccess(settings.provider, settings.key, lent_to=settings.lent_to)
    await build_in_thread(lambda: importlib.import_module("tarsy.llm.chat_google"))
    from tarsy.llm.chat_google import GoogleChat
    from tarsy.llm.google_native.client import Http

    http = Http(access, settings.server, settings.connect_seconds)  # belongs to this loop
    try:
        return await asyncio.to_thread(GoogleChat, settings.provider, http)
    except BaseException:
        await http.aclose()
        raise


async def _probe(target: ProbeTarget) -> Probed:
    path = URL(target.server.url).raw_path.rstrip("/")
    path = path if _VERSION.search(path) else f"{path}/v1beta"
    return await ask_for_model(target, f"{path}/models", {"x-goog-api-key": target.key} if target.key else {})


GOOGLE_CHAT: Final = ChatSpec(makers, _open, OptionalPackage("langchain_google_genai", extra="google"))
GOOGLE_CLIENTS: Final = {
    Backend.GOOGLE_NATIVE: ClientSpec(_native, GOOGLE_GENAI),
    Backend.LANGCHAIN: langchain_client(GOOGLE_CHAT),
}
GOOGLE_SPEC: Final = ProviderSpec(
    type=GOOGLE, gen_ai_name="gcp.gemini", address=makers, clients=GOOGLE_CLIENTS, probe=_probe
)
