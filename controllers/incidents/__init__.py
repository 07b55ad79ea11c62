"""Folds alerts of one incident into one Investigation."""
