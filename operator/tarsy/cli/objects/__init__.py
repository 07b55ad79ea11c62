"""Shows, tests and makes configuration objects."""
