"""Connects type `openai`: by the openai-native client, or by LangChain's ChatOpenAI."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from yarl import URL

from tarsy.llm.langchain import ChatModelSettings, ChatSpec, build_in_thread
from tarsy.llm.openai_native import OpenAINativeProvider
from tarsy.llm.probe_requests import Probed, ProbeTarget, ask_for_model, bearer_headers
from tarsy.llm.protocol import LLMClient
from tarsy.llm.providers.spec import ClientSpec, ProviderSpec, langchain_client
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import Backend, ProviderPlan
from tarsy.plan.provider_types.openai import OPENAI, OPENAI_URL

if TYPE_CHECKING:
    from tarsy.llm.chat import ChatModel


def _address(provider: ProviderPlan) -> str:
    return OPENAI_URL


def _native(
    provider: ProviderPlan, key: str | None, /, *, lent_to: Collection[str], destinations: Destinations
) -> LLMClient:
    return OpenAINativeProvider(provider, key, destinations=destinations)


async def _open(settings: ChatModelSettings) -> "ChatModel":
    def build() -> "ChatModel":
        from tarsy.llm.chat_openai import OpenAIChat

        return OpenAIChat(settings)

    return await build_in_thread(build)


async def probe_openai(target: ProbeTarget) -> Probed:
    """Probes a server with OpenAI's API."""
    path = URL(target.server.url).raw_path.rstrip("/")
    return await ask_for_model(target, f"{path}/models", bearer_headers(target.key))


OPENAI_CHAT: Final = ChatSpec(_address, _open)
OPENAI_SPEC: Final = ProviderSpec(
    type=OPENAI,
    gen_ai_name="openai",
    address=_address,
    clients={Backend.OPENAI_NATIVE: ClientSpec(_native), Backend.LANGCHAIN: langchain_client(OPENAI_CHAT)},
    probe=probe_openai,
)
