"""Renders prompts from the text files in `templates`."""
