"""Decides which parts of an object are recorded, and what counts as a change: pure functions of two versions.

`form` selects what counts as a change and removes values, `patch` compares two forms, `versions` decides what is
written, `recorded` turns recorded versions into changes and merges them with reconstructed ones.
"""
