"""Classifies the errors of a model call that all clients share, whatever library raised them.

Each client maps its own library's errors; the sentences for a broken connection, and whether to retry, are shared.
Libraries quote what a server sent (an invalid status line, an event), so their texts count as the server's words.
"""

import socket
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tarsy.llm.error_responses import clean_message
from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.llm.reach import ADDRESS_NOT_ALLOWED
from tarsy.outbound.address_check import NotAllowed

_IN_TRACE = "; what it said is in the trace"


@dataclass(frozen=True, slots=True)
class FailedCall:
    """The call that an error ended.

    Args:
        subject: Provider and model, the beginning of every message.
        secret: The API key, which is taken out of every text; None for servers that need none.
        started: Whether anything of the response was received before.
        makers: Whether the server is the vendor's own, whose words may be in a message.
    """

    subject: str
    secret: str | None
    started: bool
    makers: bool = False

    def known(self, error: BaseException) -> ModelError | None:
        """Converts the errors that all clients share: a ModelError, and an address that is not allowed; else None."""
        if isinstance(error, ModelError):
            return self._described(error)
        found = list(causes(error))
        refused = next((cause for cause in found if isinstance(cause, NotAllowed)), None)
        if refused is None:
            return None
        words = clean_message(said(found[-1], makers=True), self.secret)
        text = f"{ADDRESS_NOT_ALLOWED}{refused}"
        return self.error(ModelErrorCode.INVALID_REQUEST, text, retryable=False, words=words)

    def error(
        self,
        code: ModelErrorCode,
        text: str,
        *,
        retryable: bool,
        retry_after: float | None = None,
        words: str = "",
    ) -> ModelError:
        """Returns the error of this call.

        Args:
            code: the reason.
            text: the message, without provider and model.
            retryable: whether the same call may succeed later.
            retry_after: seconds that the server asks to wait.
            words: the server's message, for the trace.
        """
        return ModelError(
            code,
            f"{self.subject}: {text}",
            retryable=retryable,
            retry_after=retry_after,
            started=self.started,
            words=words,
        )

    def _described(self, error: ModelError) -> ModelError:
        said = error.message.removeprefix(f"{self.subject.partition(' (')[0]}: ")
        return ModelError(
            error.code,
            f"{self.subject}: {said}",
            retryable=error.retryable,
            retry_after=error.retry_after,
            started=self.started or error.started,
            words=error.words,
            window=error.window,
            asked=error.asked,
        )


def provider_message(text: str, words: str, call: FailedCall) -> str:
    """Appends a server's message, or for a server that is not the vendor's own, a pointer to the trace.

    Args:
        text: the beginning.
        words: the server's message.
        call: the call that failed.
    """
    if not words:
        return text
    return f"{text}: {words}" if call.makers else f"{text}{_IN_TRACE}"


def said(error: BaseException, *, makers: bool) -> str:
    """Describes an error by type and text; for a server that is not the vendor's own, only the system's text."""
    kind = type(error).__name__
    if makers:
        return f"{kind}: {error}"
    return f"{kind}: {error.strerror}" if isinstance(error, OSError) and error.strerror else kind


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yields the error and its causes, the innermost last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def unreachable(found: Sequence[BaseException]) -> tuple[str, bool] | None:
    """Returns why a server cannot be reached and whether that may pass; None where there is no specific reason.

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
    """Returns what to check when a server cannot be reached, in brackets.

    Args:
        own_address: whether the provider has a `spec.baseURL`.
    """
    if own_address:
        return " (check spec.baseURL: host, port, http or https, and that the server runs)"
    return " (check DNS, proxies and NetworkPolicies between the operator and the provider)"


def of_connection(found: Sequence[BaseException], words: str, call: FailedCall) -> tuple[ModelErrorCode, bool, str]:
    """Classifies a connection that broke or could not be made: code, whether to retry, and message.

    Args:
        found: the error and its causes (`causes`).
        words: the library's message (`said`).
        call: the call that the error ended.
    """
    if call.started:
        return ModelErrorCode.PARTIAL_STREAM, True, f"the connection broke in the middle of the response: {words}"
    why, again = unreachable(found) or ("no response from the server", True)
    return ModelErrorCode.CONNECTION, again, f"{why}{where_to_look(not call.makers)}: {words}"
