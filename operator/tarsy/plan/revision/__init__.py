"""Revisions of a Chain: what a run would do now, as a digest, and the objects that it was resolved from."""
