"""Composes the long-running processes: operator, worker, HTTP server, tool server gateway."""
