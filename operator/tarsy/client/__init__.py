"""Calls the API of TARSy, for the kubectl plugin and other programs; imports no server and no database driver."""
