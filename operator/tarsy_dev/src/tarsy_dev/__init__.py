"""Runs everything on one machine: a Kubernetes API, Postgres, a scripted model, Kubernetes tools, the operator."""
