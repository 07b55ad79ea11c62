"""Stores the verdicts of people, suites and replays on runs and their findings."""
