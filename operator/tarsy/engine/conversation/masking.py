"""Removes secrets from the output of models: once for each answer, before the boundary that records it.

What is recorded is then what the model sees of itself next, and what people read. The words as they were stay in memory
until the answer's tools are called: a call is made with what the model wrote and recorded with what is shown. What a
provider wants back (`provider_state`) is never changed, because providers verify it: where it repeats the words that
were taken out of text or calls it goes as a whole, and thinking that holds a secret stays in it and nowhere else.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import orjson

from tarsy.masking import masking_size, off_loop, without_secrets_or_withheld

Mask = Callable[[str], str]
"""Takes secrets out of a text; raises whatever it likes where it cannot."""
MaskedText = Callable[[str, str], str]
"""The arguments of a call of a tool, by its name, as record and people see them; never raises."""

WITHHELD = "[what the model said here could not be searched for secrets and is withheld]"
_TELLS = 6  # characters that a word must have to be told from chance


def mask_response_text(mask: Mask, text: str) -> str:
    """The text without secrets; a sentence in its place where it cannot be searched (fail closed)."""
    return without_secrets_or_withheld(mask, text, "what a model said", WITHHELD).text


async def masked_aside(mask: Mask, text: str) -> str:
    """Masks as above, long texts in a thread."""
    return await off_loop(partial(mask_response_text, mask, text), masking_size(text))


def holds(state: object, text: tuple[str, str], arguments: Iterable[tuple[str, str]]) -> bool:
    """Whether what a provider wants back repeats words that were taken out of its answer.

    Args:
        state: any JSON.
        text: of the answer, before and after.
        arguments: of each of its calls, before and after.
    """
    kept = {leaf for leaf in _leaves(state) if len(leaf) >= _TELLS}
    if text[0] != text[1] and any(leaf in text[0] and leaf not in text[1] for leaf in kept):
        return True
    gone = {leaf for before, after in arguments if before != after for leaf in {*_parsed(before)} - {*_parsed(after)}}
    return not kept.isdisjoint(gone)


def _parsed(arguments: str) -> Iterator[str]:
    yield arguments
    try:
        yield from _leaves(orjson.loads(arguments))
    except orjson.JSONDecodeError:
        return


def _leaves(value: Any) -> Iterator[str]:
    """All texts in a JSON value, but the names of its fields."""
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _leaves(item)
        case list():
            for item in value:
                yield from _leaves(item)
        case _:
            return
