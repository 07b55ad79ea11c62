"""Kubernetes' HTTP interface over the store: `app` takes a request and finds who answers it."""
