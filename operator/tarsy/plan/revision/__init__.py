"""Computes revisions of a Chain: the behaviour of a run as a digest, and the objects that it was resolved from."""
