"""Accesses the Kubernetes API: client, credentials, Events, tokens, leader election."""
