"""Runs a plan: investigation, stage, agent; its needs of the world are in `ports`."""
