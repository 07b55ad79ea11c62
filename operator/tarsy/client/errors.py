"""Defines the errors of the API client."""


class ApiUseError(Exception):
    """The API was not reached or refused a request; the message contains the reason and the remedy.

    Args:
        message: one sentence for the user.
        status: the HTTP status; 0 without a response.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class BrokenOff(ApiUseError):
    """The API is unavailable, or a response broke off; the same request may succeed later."""
