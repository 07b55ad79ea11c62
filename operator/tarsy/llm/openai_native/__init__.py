"""Chat completions without an SDK: OpenAI and every server that speaks its API, over aiohttp."""

from tarsy.llm.openai_native.client import OpenAINativeProvider

__all__ = ["OpenAINativeProvider"]
