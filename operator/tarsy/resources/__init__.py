"""Defines the custom resources: their models, how they are read, and the CRDs generated from them.

Decision: nothing here knows the Kubernetes API; objects come in as JSON and go out as JSON.
"""
