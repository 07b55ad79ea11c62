"""Reads the bodies of senders whose format is known: one module a sender, each a pure function from JSON to fields."""
