"""What ends a command with a sentence; a module of its own, so that telling it costs no import of the command."""


class AskError(Exception):
    """A question was not answered: the LLMProvider cannot be used, or its model failed."""
