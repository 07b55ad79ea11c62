"""Defines calls that people approve: the signed digest, the changed objects, the origins of arguments."""
