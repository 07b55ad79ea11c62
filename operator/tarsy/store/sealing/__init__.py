"""Seals the record of a run, and checks a record against its seals."""
