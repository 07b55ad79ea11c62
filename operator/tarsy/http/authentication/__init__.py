"""Authenticates requests: bearer tokens, the front proxy of the Kubernetes API server, the session of the web UI."""
