"""Defines the verdicts on a finding: of people, judges, replays and later alerts."""
