"""Routes of the API, one module a subject: parameters, handlers and entries of the route table."""
