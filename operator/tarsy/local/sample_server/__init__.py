"""A sample MCP server: read-only Kubernetes with the permissions of the account it is given, Secrets never.

It is what the demo's agents look around with, and an example of a tool server. It is a process of its own, started for
every agent, so it imports little: the HTTP client is the one that the MCP SDK has loaded anyway.
"""
