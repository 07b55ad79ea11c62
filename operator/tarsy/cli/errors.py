"""Defines errors that end a command with one sentence."""


class CommandError(Exception):
    """A command cannot do what it was asked to do; the message contains the reason and the remedy."""


class AskError(CommandError):
    """A question was not answered: the LLMProvider cannot be used, or its model failed."""
