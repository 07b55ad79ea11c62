"""Sends requests of a user to the operator: submit, decide, retry, chat."""
