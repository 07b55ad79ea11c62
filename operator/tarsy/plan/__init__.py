"""Resolves references and overrides into one frozen plan."""
