"""Limits a run: tokens, cost, tool calls, time."""
