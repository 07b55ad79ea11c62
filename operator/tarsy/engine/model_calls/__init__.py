"""Makes one model call: the request, the response as it streams in, and the record of it."""
