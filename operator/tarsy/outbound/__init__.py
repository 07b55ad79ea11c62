"""Connections to where specs lead: every client resolves, judges and connects here.

Decision: a host is judged where its connection is made, and connected to at the address that was judged. There is no
memory of judgements that a changed DNS answer could outlive, no proxy of the environment, and no client with a way of
its own: aiohttp takes a connector (`tarsy.outbound.connector`), httpx2 a transport (`tarsy.outbound.transport`).
"""
