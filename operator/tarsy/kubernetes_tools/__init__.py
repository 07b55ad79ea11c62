"""Serves read-only Kubernetes tools over MCP with the rights of its own account; never reads Secrets.

The shipped library runs it in the cluster, and the demo runs it as a child process of each agent. It therefore imports
little: its HTTP client is the one that the MCP SDK has loaded anyway.
"""
