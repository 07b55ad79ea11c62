"""Prints what the record of an investigation says."""
