"""Declares the routes of the API, one module per subject: parameters, handlers and entries of the route table."""
