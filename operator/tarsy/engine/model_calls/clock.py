"""Applies the time limits of one model call: silence, the first piece of an answer, a stall, the whole call.

A server that shows life (a status of 200, a comment in its stream) may read a long prompt for minutes before the answer
begins; a server that sends nothing at all times out sooner. Every error names the limit that was reached, its value
and the field that raises it.
"""

import asyncio

from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.plan.model import AgentLimits, CallTimeouts, ProviderPlan


class CallClock:
    """Says how long the next sign of life of a call may take, and which limit struck when it does not come.

    Args:
        provider: is asked.
        timeouts: of its calls.
    """

    def __init__(self, provider: ProviderPlan, timeouts: CallTimeouts) -> None:
        self._provider = provider
        self._timeouts = timeouts
        self._answering = False
        self._first_due = 0.0
        self._next = ModelErrorCode.SILENT

    def begin(self, after: float = 0.0) -> float:
        """A try begins in `after` seconds; the seconds until its first sign of life is due."""
        self._first_due = asyncio.get_running_loop().time() + after + self._timeouts.first_token
        return self._before_answer(after)

    def alive(self) -> float:
        """The server showed life, and nothing of the answer; the seconds until its next sign of life is due."""
        return self.answering() if self._answering else self._before_answer(0.0)

    def answering(self) -> float:
        """A piece of the answer came; the seconds until the next sign of life is due."""
        self._answering, self._next = True, ModelErrorCode.STALL
        return self._timeouts.stall

    def idle_error(self) -> ModelError:
        """Names the limit that struck."""
        limits, code = self._timeouts, self._next
        match code:
            case ModelErrorCode.STALL:
                text = f"the model's stream stalled for {limits.stall:g} s ({self._fields('stall')})."
                return ModelError(code, text, retryable=True, started=True)
            case ModelErrorCode.SILENT:
                name = self._provider.ref.name
                text = (
                    f"the model's server sent nothing at all for {limits.silence:g} s "
                    f"(spec.timeouts.silenceSeconds of LLMProvider {name})."
                )
                return ModelError(code, text, retryable=True)
            case _:
                text = f"the model sent nothing for {limits.first_token:g} s ({self._fields('firstToken')})."
                return ModelError(code, text, retryable=True)

    def call_error(self, seconds: float, limits: AgentLimits) -> ModelError:
        """Names the limit that ended a call after `seconds`: its own, or what was left of its iteration's."""
        if seconds >= self._timeouts.call:
            text = f"the model's answer took longer than {seconds:g} s ({self._fields('call', 'modelCall')})."
            return ModelError(ModelErrorCode.TIMEOUT, text, retryable=True)
        whole = self._timeouts.iteration
        text = f"the model's answer took longer than its iteration may, {whole:g} s (timeouts.iterationSeconds)."
        return ModelError(ModelErrorCode.ITERATION_TIMEOUT, text, retryable=True)

    def conclusion_error(self, limits: AgentLimits) -> ModelError:
        """The error of a call that did not end in time after the run was asked to conclude."""
        text = (
            f"the model gave no conclusion within {limits.conclusion_seconds:g} s of being asked to conclude "
            "(timeouts.conclusionSeconds)."
        )
        return ModelError(ModelErrorCode.CONCLUSION_TIMEOUT, text, retryable=False)

    def _before_answer(self, after: float) -> float:
        left = max(0.0, self._first_due - asyncio.get_running_loop().time())
        silence = after + self._timeouts.silence
        self._next = ModelErrorCode.SILENT if silence < left else ModelErrorCode.FIRST_TOKEN_TIMEOUT
        return min(silence, left)

    def _fields(self, own: str, of_chain: str | None = None) -> str:
        """The fields that raise a limit; a plan older than the provider's own limits has those of its chain only."""
        chain = f"timeouts.{of_chain or own}Seconds"
        if self._provider.timeouts is None:
            return chain
        return f"spec.timeouts.{own}Seconds of LLMProvider {self._provider.ref.name}, else {chain} of the Chain"
