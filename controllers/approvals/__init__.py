"""Requests approvals of tool calls from people, and applies their decisions."""
