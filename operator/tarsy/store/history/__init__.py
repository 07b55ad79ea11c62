"""Stores the history of Kubernetes objects, and deletes what is older than its retention."""
