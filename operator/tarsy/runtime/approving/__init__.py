"""Finds, reads and shows what a call that needs approval would change."""
