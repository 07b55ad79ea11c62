"""Serves the operations of the API as tools over MCP, for editors and agents of people (`/mcp`).

Each tool calls a route of the table, or several, as the caller: the bearer token is reviewed and each route is
authorized, as for every other request. No tool decides anything: none cancels, concludes, approves or promotes.
"""
