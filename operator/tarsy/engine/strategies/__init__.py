"""Runs the strategies: the tool loop, the single call, the formats of tool calls, the fallback of providers."""
