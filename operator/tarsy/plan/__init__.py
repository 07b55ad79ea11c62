"""References and overrides become one frozen plan."""
