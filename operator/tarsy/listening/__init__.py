"""Accepts HTTP connections, within limits, for every server of the product.

`server` opens a port for an aiohttp application, `asgi` applies the same limits to uvicorn. `connection_guard` bounds a
connection until its client is authenticated, `fair_set` decides which connection is closed to make room, and
`uncompressed_bodies` refuses compressed bodies.
"""
