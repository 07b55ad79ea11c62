"""The custom resources: their models, what is read from them, and the CRDs generated from them.

Decision: nothing here knows the Kubernetes API; objects come in as JSON and go out as JSON.
"""
