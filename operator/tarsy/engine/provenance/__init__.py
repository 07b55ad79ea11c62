"""Determines the origins of a tool call's arguments, and the data that they carry out."""
