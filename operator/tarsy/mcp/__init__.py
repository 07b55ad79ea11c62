"""Tool servers: sessions, names, arguments, calls and recovery (DESIGN section 2).

The SDK's package is also called `mcp`; absolute imports keep the two apart.
"""
