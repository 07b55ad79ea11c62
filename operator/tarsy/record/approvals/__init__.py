"""Defines calls that people approve: what they sign, what a call changes, where its arguments come from."""
