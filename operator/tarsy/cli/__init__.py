"""Declares the commands of `tarsy` and `kubectl tarsy`, and renders their output."""
