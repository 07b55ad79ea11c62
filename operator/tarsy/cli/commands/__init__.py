"""Declares the arguments of each command of `tarsy` and of `kubectl tarsy`; the modules of `tarsy.cli` do the work.

Decision: a command has as many parameters as it has options, because Typer reads options from parameters. What it calls
gets them grouped.
"""
