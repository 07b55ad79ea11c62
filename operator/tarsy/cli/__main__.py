"""Runs the command as `python -m tarsy.cli`."""

from tarsy.cli.main import main

main()
