"""What ends a command with a sentence; a module of its own, so that telling it costs no import of the command."""


class CommandError(Exception):
    """A command cannot do what it was asked; the message says why, and what to do."""


class AskError(CommandError):
    """A question was not answered: the LLMProvider cannot be used, or its model failed."""


class ApiUseError(CommandError):
    """The API was not reached, or it refused; `status` is that of HTTP, 0 without one."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class BrokenOff(ApiUseError):
    """The API is away, or an answer broke off: the same may succeed later."""
