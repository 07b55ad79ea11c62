"""Serves the admission webhook, and publishes the certificates that the Kubernetes API server trusts."""
