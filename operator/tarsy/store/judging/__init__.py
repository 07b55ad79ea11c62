"""Stores what people, suites and replays say of runs and of what they found."""
