"""Finds, reads and shows the objects that a call that needs approval would change."""
