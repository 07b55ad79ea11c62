"""Defines the error of a process that cannot start."""


class StartError(Exception):
    """A process cannot start; the message contains the reason and the remedy."""
