"""Computes evidence for callers of the API: reads a namespace with their rights, within limits."""
