"""The error of a process that cannot start."""


class StartError(Exception):
    """A process cannot start; the message says why, and what to do."""
