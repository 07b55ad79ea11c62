"""Holds the conversation of an agent, and keeps it within the context window of its model."""
