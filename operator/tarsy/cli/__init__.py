"""The command `tarsy`."""
