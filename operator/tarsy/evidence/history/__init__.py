"""Decides what of an object is recorded, and what a change of it is: pure functions of two versions.

`form` selects what counts as a change and removes values, `patch` compares two forms, `versions` decides what is
written, `recorded` turns recorded versions into changes and merges them with reconstructed ones.
"""
