"""Defines the error of a runbook that cannot be fetched.

Decision: one error with a sentence for people. Every cause has the same consequence: the default runbook is used.
"""


class RunbookUnavailable(Exception):
    """A runbook cannot be had: the message says why and, where there is one, the remedy; it never holds a token."""
