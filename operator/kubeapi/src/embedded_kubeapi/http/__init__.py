"""Serves the Kubernetes HTTP API from the store; `app` dispatches requests."""
