"""`python -m tarsy.cli`: the command without its script."""

from tarsy.cli.main import main

main()
