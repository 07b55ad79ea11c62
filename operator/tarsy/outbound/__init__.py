"""Connects to URLs of specs: every client resolves, checks and connects here.

Decision: an address is checked when the connection is made, and the connection goes to exactly that address, so a
changed DNS response cannot bypass the check. Results are not cached, and proxies of the environment are not used. Every
client uses this package: aiohttp by a connector (`tarsy.outbound.connector`), httpx2 by a transport
(`tarsy.outbound.transport`).
"""
