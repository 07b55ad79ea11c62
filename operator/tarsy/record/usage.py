"""Defines token usage as providers report it.

A sum with an unknown part has `complete=False`: unknown usage is never counted as zero.
"""

from pydantic import BaseModel, ConfigDict, Field


class Usage(BaseModel):
    """Tokens of one model call, or a sum of calls.

    `output_tokens` includes `thinking_tokens`; `cached_tokens`, read from a prompt cache, and `cache_write_tokens`,
    written to one at a price of their own, are part of `input_tokens`. `complete` is False when any summed call
    reported no usage.
    """

    model_config = ConfigDict(frozen=True)

    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = Field(default=0, exclude_if=lambda tokens: tokens == 0)
    """Priced with its call; the record has no column for it."""
    complete: bool = True

    @property
    def total_tokens(self) -> int:
        """Input plus output."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            thinking_tokens=self.thinking_tokens + other.thinking_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            complete=self.complete and other.complete,
        )


UNKNOWN_USAGE = Usage(complete=False)
