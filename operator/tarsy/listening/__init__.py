"""Listens for HTTP: every server of the product accepts its connections here, within bounds.

`server` opens a port for an aiohttp application, `guard` stands between a socket and the server until its client has
signed in, `crowd` decides who makes room for whom, `plain` refuses bodies that would have to be unpacked.
"""
