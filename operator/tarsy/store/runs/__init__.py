"""Writes runs: acceptance, claims and leases, the steps of their calls, and their end."""
