"""Turns the final text of an agent into a finding, and checks its citations."""
