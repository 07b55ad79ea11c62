"""Connects type `anthropic` by LangChain's ChatAnthropic."""

from typing import TYPE_CHECKING, Final

from yarl import URL

from tarsy.llm.extras import OptionalPackage
from tarsy.llm.langchain import ChatModelSettings, ChatSpec, build_in_thread
from tarsy.llm.probe_requests import Probed, ProbeTarget, ask_for_model
from tarsy.llm.providers.spec import ProviderSpec, langchain_client
from tarsy.plan.model import Backend, ProviderPlan
from tarsy.plan.provider_types.anthropic import ANTHROPIC, ANTHROPIC_URL

if TYPE_CHECKING:
    from tarsy.llm.chat import ChatModel


def _address(provider: ProviderPlan) -> str:
    return ANTHROPIC_URL


async def _open(settings: ChatModelSettings) -> "ChatModel":
    def build() -> "ChatModel":
        from tarsy.llm.chat_anthropic import AnthropicChat

        return AnthropicChat(settings)

    return await build_in_thread(build)


async def _probe(target: ProbeTarget) -> Probed:
    path = URL(target.server.url).raw_path.rstrip("/").removesuffix("/v1")
    headers = {"anthropic-version": "2023-06-01"} | ({"x-api-key": target.key} if target.key else {})
    return await ask_for_model(target, f"{path}/v1/models", headers)


ANTHROPIC_CHAT: Final = ChatSpec(_address, _open, OptionalPackage("langchain_anthropic", extra="anthropic"))
ANTHROPIC_SPEC: Final = ProviderSpec(
    type=ANTHROPIC,
    gen_ai_name="anthropic",
    address=_address,
    clients={Backend.LANGCHAIN: langchain_client(ANTHROPIC_CHAT)},
    probe=_probe,
)
