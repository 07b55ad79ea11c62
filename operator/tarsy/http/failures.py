"""What went wrong behind a handler, as the error that a caller is told.

Decision: what the Kubernetes API said to a request is told only where it was made as the caller (`Relayed`, by
`as_caller_said`); an error of a request that the operator made for itself is 503 or 500 without its words.
"""

from tarsy.http.errors import HttpError, Relayed, Unavailable
from tarsy.kube.client import ApiError
from tarsy.store.errors import StoreUnavailable


def as_http_error(error: Exception) -> HttpError:
    """The error to answer with; 500 without a detail for what nobody foresaw."""
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
    """What the Kubernetes API answered to a request that was made with the caller's own token."""
    if error.transient and error.status != 429:
        return Unavailable("the Kubernetes API is unavailable; try again")
    return Relayed(error.status, error.reason, error.message)
