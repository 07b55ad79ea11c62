"""Runs a plan: its investigation, stages and agents. The interfaces to the outside are in `ports`."""
