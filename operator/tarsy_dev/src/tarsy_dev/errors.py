"""Defines the error of the development stack."""


class DevelopmentError(Exception):
    """The development stack cannot do what it was asked; the message says why, and what to do."""
