"""Asks the operator for something, as a person: submits, decides, retries, asks back."""
