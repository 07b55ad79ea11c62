"""Calls chat completions without an SDK: OpenAI and every server with its API, over aiohttp."""

from tarsy.llm.openai_native.client import OpenAINativeProvider

__all__ = ["OpenAINativeProvider"]
