"""Decides which revision of a Chain with `spec.promotion` serves new runs."""
