"""What every client makes of an error in the same way, whatever library raised it.

A client still says itself which of its library's errors is which; the words for a connection that broke, and what may
pass by itself, are the same for all. Libraries quote what a server sent (a status line that is none, an event), so
their texts count as the server's words.
"""

import socket
import ssl
from collections.abc import Iterator, Sequence

from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.llm.reach import ADDRESS_NOT_ALLOWED
from tarsy.outbound.address_check import NotAllowed

_IN_TRACE = "; what it said is in the trace"


def describe_provider(error: ModelError, *, subject: str, started: bool) -> ModelError:
    """An error that is classified already, with provider and model (`subject`) at the beginning of its message."""
    said = error.message.removeprefix(f"{subject.partition(' (')[0]}: ")
    return ModelError(
        error.code,
        f"{subject}: {said}",
        retryable=error.retryable,
        retry_after=error.retry_after,
        started=started or error.started,
        words=error.words,
        window=error.window,
        asked=error.asked,
    )


def provider_message(text: str, words: str, *, makers: bool) -> str:
    """Appends the words of a server to a sentence, or where they are when it is not the maker's own."""
    if not words:
        return text
    return f"{text}: {words}" if makers else f"{text}{_IN_TRACE}"


def said(error: BaseException, *, makers: bool) -> str:
    """Tells the kind of an error and its text; of a server that is not the maker's own, only the system's text."""
    kind = type(error).__name__
    if makers:
        return f"{kind}: {error}"
    return f"{kind}: {error.strerror}" if isinstance(error, OSError) and error.strerror else kind


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what it came from, the innermost last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def not_allowed(found: Sequence[BaseException]) -> str | None:
    """Finds the sentence about an address that may not be connected to, by `causes`; None where there is none."""
    return next((f"{ADDRESS_NOT_ALLOWED}{cause}" for cause in found if isinstance(cause, NotAllowed)), None)


def unreachable(found: Sequence[BaseException]) -> tuple[str, bool] | None:
    """What keeps a server from being reached, by `causes`, and whether that may pass; None where nothing special.

    What to look at is said by who knows whether the address is the provider's own (`where_to_look`).
    """
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in found):
        return "the server's TLS certificate is not trusted", False
    if any(isinstance(cause, socket.gaierror) for cause in found):
        return "the server's name cannot be resolved", True
    if any(isinstance(cause, ssl.SSLError) for cause in found):
        return "the server does not speak TLS on that port", True
    if any(isinstance(cause, ConnectionRefusedError) for cause in found):
        return "the server refuses the connection", True
    return None


def where_to_look(own_address: bool) -> str:
    """What to look at when a server cannot be reached, in brackets.

    Args:
        own_address: whether the provider has a `spec.baseURL`.
    """
    if own_address:
        return " (check spec.baseURL: host, port, http or https, and that the server runs)"
    return " (check DNS, proxies and NetworkPolicies between the operator and the provider)"


def of_connection(
    found: Sequence[BaseException], words: str, *, started: bool, makers: bool
) -> tuple[ModelErrorCode, bool, str]:
    """What a connection that broke, or never came to be, means: its code, whether to ask again, and a sentence.

    Args:
        found: by `causes`.
        words: what the library says (`said`).
        started: whether anything of the answer was received before.
        makers: whether the server is the maker's own, so that there is no `spec.baseURL`.
    """
    if started:
        return ModelErrorCode.PARTIAL_STREAM, True, f"the connection broke in the middle of the answer: {words}"
    why, again = unreachable(found) or ("no answer from the server", True)
    return ModelErrorCode.CONNECTION, again, f"{why}{where_to_look(not makers)}: {words}"
