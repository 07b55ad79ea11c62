"""Calls Gemini through google-genai: thinking, native tools, and thought signatures that survive the process.

Only `provider` may be imported at start: the other modules import the SDK, which is an optional package and takes a
second of CPU.
"""
