"""Asks people about calls of tools, and takes what they decided."""
