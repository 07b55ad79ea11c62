"""Prints the OpenAPI document, from which the types of the web UI are generated.

Decision: the document is built from the table of routes, so neither a server nor a committed copy is needed.
"""

import json

from tarsy.http.live.messages import ClientAction, ServerMessage
from tarsy.http.openapi import document
from tarsy.http.table import all_routes

if __name__ == "__main__":
    print(json.dumps(document(all_routes(), (ServerMessage, ClientAction))))
