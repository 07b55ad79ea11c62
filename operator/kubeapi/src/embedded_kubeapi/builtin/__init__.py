"""Defines the built-in kinds: the list (`catalog`), table columns (`columns`), rules per kind (`strategies`)."""
