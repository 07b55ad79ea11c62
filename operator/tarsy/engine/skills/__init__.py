"""Gives agents their skills: in the prompt, or loaded by a tool of the engine."""
