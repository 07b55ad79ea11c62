"""Prints lists and sums over many investigations."""
