"""Defines the error of a runbook that cannot be fetched.

Decision: one error with a sentence for people. Every cause has the same consequence: the default runbook is used.
"""


class RunbookUnavailable(Exception):
    """A runbook cannot be fetched: the message states why, with the remedy if there is one, and contains no token."""
