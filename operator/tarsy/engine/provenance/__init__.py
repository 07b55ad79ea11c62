"""Tells where the arguments of a tool call come from, and what they carry out."""
