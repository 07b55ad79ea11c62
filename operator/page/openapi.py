"""Prints the OpenAPI document, which the page's types are made of.

Decision: out of the table of routes itself, so neither a server nor a committed copy is needed.
"""

import json

from tarsy.http.live.messages import ClientAction, ServerMessage
from tarsy.http.openapi import document
from tarsy.http.table import all_routes

if __name__ == "__main__":
    print(json.dumps(document(all_routes(), (ServerMessage, ClientAction))))
