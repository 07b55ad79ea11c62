"""Prompts: text files and the few functions that fill them in."""
