"""Prints the record of an investigation."""
