"""What the HTTP API answers with: frozen models, made of the record or of Kubernetes objects, and nothing else.

What is not in a view is not served: signatures of providers, specs of objects, anything of a Secret.
"""
