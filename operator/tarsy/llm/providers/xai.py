"""Connects type `xai` by LangChain's ChatXAI; its server has OpenAI's API."""

from typing import TYPE_CHECKING, Final

from tarsy.llm.extras import OptionalPackage
from tarsy.llm.langchain import ChatModelSettings, ChatSpec, build_in_thread
from tarsy.llm.providers.openai import probe_openai
from tarsy.llm.providers.spec import ProviderSpec, langchain_client
from tarsy.plan.model import Backend, ProviderPlan
from tarsy.plan.provider_types.xai import XAI, XAI_URL

if TYPE_CHECKING:
    from tarsy.llm.chat import ChatModel


def _address(provider: ProviderPlan) -> str:
    return XAI_URL


async def _open(settings: ChatModelSettings) -> "ChatModel":
    def build() -> "ChatModel":
        from tarsy.llm.chat_xai import XAIChat

        return XAIChat(settings)

    return await build_in_thread(build)


XAI_CHAT: Final = ChatSpec(_address, _open, OptionalPackage("langchain_xai", extra="xai"))
XAI_SPEC: Final = ProviderSpec(
    type=XAI,
    gen_ai_name="x_ai",
    address=_address,
    clients={Backend.LANGCHAIN: langchain_client(XAI_CHAT)},
    probe=probe_openai,
)
