"""Converts exceptions of handlers to HTTP errors.

Decision: messages of the Kubernetes API are passed on only for requests that were sent with the caller's token
(`Relayed`, by `as_caller_said`). An error of the operator's own requests becomes 503 or 500 without its message.
"""

from tarsy.http.errors import HttpError, Relayed, Unavailable
from tarsy.kube.client import ApiError
from tarsy.store.errors import StoreUnavailable


def as_http_error(error: Exception) -> HttpError:
    """Converts an exception; unexpected ones become 500 without details."""
    match error:
        case HttpError():
            return error
        case StoreUnavailable():
            return Unavailable("the database is unavailable; try again")
        case ApiError() if error.transient:
            return Unavailable("the Kubernetes API is unavailable; try again")
        case _:
            return HttpError("internal error; see the log of the server")


def as_caller_said(error: ApiError) -> HttpError:
    """Converts an error of the Kubernetes API for a request that was sent with the caller's token."""
    if error.transient and error.status != 429:
        return Unavailable("the Kubernetes API is unavailable; try again")
    return Relayed(error.status, error.reason, error.message)
