"""Serves read-only PromQL over MCP, bound to the namespaces of a run, with results small enough for a model.

No published server fits: none keeps the selectors of a query to a namespace that the model cannot choose, and those
that were tried return every series and sample (docs/tool-servers.md).
"""
