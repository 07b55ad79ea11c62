"""Reads the arguments of tool calls from the text that a model wrote, for function calls and for calls in text."""
