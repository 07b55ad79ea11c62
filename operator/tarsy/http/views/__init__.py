"""Response models of the HTTP API: frozen, built from the record or from Kubernetes objects.

The API returns nothing that is not in one of these models: no signatures of providers, no whole specs, nothing of a
Secret.
"""
