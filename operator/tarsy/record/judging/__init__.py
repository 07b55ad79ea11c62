"""Defines what people, judges, replays and later alerts say of a finding."""
