"""Keeps a conversation within its model's context window: old messages are shortened, without asking a model.

Messages are replaced one for one, never removed: calls keep their answers, positions keep their meaning, and the record
keeps each message as it was beside what was sent instead. Oldest tool results go first, then older texts of the model,
then what is left of old results, and only at last the results of the last two rounds and the fenced texts of the
opening, the longest of them first, down to one common length. System messages are never touched. Pure functions of the
conversation: an attempt that resumes compacts as the one that died would have.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tarsy.llm.message_forms import MessageForms
from tarsy.record.messages import Message, Role, ToolDefinition

TOKENS_PER_BYTE = 0.25
_DENSITY = 0.2, 1.0
"""Tokens a byte that are believed of a provider's report: less would overfill, more would empty a window."""
_FULL, _AFTER = 0.85, 0.60
"""Shares of a window: above the first it is compacted, down to the second, so that not every call compacts anew."""
_ANSWER_TOKENS = 8_192
_ROUNDS = 2
_RESULT = 600, 300
_TEXT = 300, 150
_STUB = 120, 0
_LEAST = 400
_FENCE = re.compile(r"<!-- (\w+)_START -->\n")
_OBSERVATION = "Observation:"


@dataclass(frozen=True, slots=True)
class Window:
    """A model's window.

    Args:
        tokens: what it holds.
        reserve: tokens of it that are kept for the answer.
        density: tokens a byte, as the provider last counted; None when it never has.
        overhead: bytes beside the messages (tool definitions).
    """

    tokens: int
    reserve: int
    density: float | None = None
    overhead: int = 0

    @property
    def full(self) -> int:
        """Bytes of messages above which the conversation is compacted."""
        return self._bytes(_FULL)

    @property
    def room(self) -> int:
        """Bytes of messages to which it is compacted."""
        return self._bytes(_AFTER)

    def _bytes(self, share: float) -> int:
        low, high = _DENSITY
        density = TOKENS_PER_BYTE if self.density is None else min(max(self.density, low), high)
        return max(0, int((self.tokens * share - self.reserve) / density) - self.overhead)


def reserve(window: int, max_output_tokens: int | None) -> int:
    """Tokens kept for the answer: the provider's own limit, but never more than a quarter of the window."""
    return min(max_output_tokens or _ANSWER_TOKENS, window // 4)


def size(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def size_of(messages: Sequence[Message]) -> int:
    """Bytes of messages, arguments of their tool calls included."""
    return sum(map(_size_of_message, messages))


def _size_of_message(message: Message) -> int:
    return size(message.content) + sum(size(call.arguments) for call in message.tool_calls)


def size_of_tools(tools: Sequence[ToolDefinition]) -> int:
    """Bytes of tool definitions, about."""
    return sum(size(t.name) + size(t.description) + len(str(t.parameters_schema)) for t in tools)


def apply_compaction(messages: Sequence[Message], replaced: Mapping[int, str]) -> tuple[Message, ...]:
    """The messages as they are sent.

    Args:
        messages: as they are on record.
        replaced: what is sent instead of some of them, by position.
    """
    return tuple(replace(m, content=replaced[i]) if i in replaced else m for i, m in enumerate(messages))


class SentMessages:
    """The messages of one conversation as they are sent, with their size: each is made and counted once."""

    def __init__(self) -> None:
        self._forms = MessageForms()

    def of(self, messages: Sequence[Message], replaced: Mapping[int, str]) -> tuple[tuple[Message, ...], int]:
        """Returns the messages, and their bytes (`apply_compaction`, `size_of`).

        Args:
            messages: as they are on record.
            replaced: what is sent instead of some of them, by position.
        """

        def made(place: int) -> tuple[Message, int]:
            text, message = replaced.get(place), messages[place]
            sent = message if text is None else replace(message, content=text)
            return sent, _size_of_message(sent)

        variants = [replaced.get(place) for place in range(len(messages))] if replaced else ()
        rows = self._forms.each("sent", messages, made, variants)
        return tuple([sent for sent, _ in rows]), sum([size for _, size in rows])

    def size_of_tools(self, tools: Sequence[ToolDefinition]) -> int:
        """Bytes of tool definitions, about."""
        return self._forms.part("tools", tools, lambda: size_of_tools(tools))


def compact_conversation(messages: Sequence[Message], replaced: Mapping[int, str], room: int) -> dict[int, str]:
    """Returns the messages that must take another form than before, so that the conversation takes at most `room` "
    "bytes.

    Args:
        messages: as they are on record, those about to be sent included.
        replaced: what was sent instead of some of them so far, by position.
        room: bytes.

    Returns:
        New replacements by position; too few when no more can be done.
    """
    now = {i: replaced.get(i, m.content) for i, m in enumerate(messages)}
    total = size_of(messages) + sum(size(now[i]) - size(messages[i].content) for i in replaced)
    changed: dict[int, str] = {}
    for i, text in _steps(messages):
        if total <= room:
            return changed
        saved = size(now[i]) - size(text)
        if saved > 0:
            now[i] = changed[i] = text
            total -= saved
    if total > room:
        changed |= _level(messages, now, total - room)
    return changed


def _steps(messages: Sequence[Message]) -> Iterator[tuple[int, str]]:
    """Older messages with their shorter forms, in the order in which they are given up."""
    answers = [i for i, m in enumerate(messages) if m.role is Role.ASSISTANT]
    end = answers[-_ROUNDS] if len(answers) >= _ROUNDS else 0
    results = [i for i in _results(messages) if i < end]
    for i in results:
        yield i, _shorten(messages[i], *_RESULT)
    for i in answers:
        if i < end:
            yield i, _shorten(messages[i], *_TEXT)
    for i in results:
        yield i, _shorten(messages[i], *_STUB)


def _results(messages: Sequence[Message]) -> list[int]:
    """Positions of results of tool calls: tool messages, and observations of ReAct."""
    first = next((i for i, m in enumerate(messages) if m.role is Role.ASSISTANT), len(messages))
    return [
        i
        for i, m in enumerate(messages)
        if m.role is Role.TOOL or (i > first and m.role is Role.USER and m.content.startswith(_OBSERVATION))
    ]


def _shorten(message: Message, head: int, tail: int) -> str:
    """A message's beginning and end, with a note of what is left out and how to see it again."""
    if message.role is Role.ASSISTANT:
        return cut_text(message.content, head, tail, "the whole is on record")
    where = "the whole is on record under this callId; call the tool again with the same arguments to see it"
    text = message.content
    fenced = next(_fenced(text), None) if message.role is Role.USER else None
    if fenced is None:
        return cut_text(text, head, tail, where)
    start, end = fenced  # an observation keeps its fence
    return text[:start] + cut_text(text[start:end], head, tail, where) + text[end:]


def cut_text(text: str, head: int, tail: int, where: str) -> str:
    """`text` itself when it is short, else its beginning and end, at line ends where there are some near.

    Args:
        text: what is to be shortened.
        head: characters to keep of its beginning, at most.
        tail: characters to keep of its end, at most.
        where: a clause that says where the rest is.
    """
    if len(text) <= head + tail + 160:
        return text
    first = text[:head]
    if (line := first.rfind("\n")) > head // 2:
        first = first[:line]
    last = text[len(text) - tail :]
    if 0 <= (line := last.find("\n")) < tail // 2:
        last = last[line + 1 :]
    left_out = len(text) - len(first) - len(last)
    whole = f"{len(text):,} characters, {text.count(chr(10)) + 1:,} lines"
    note = f"[… {left_out:,} of {whole} are left out here to save room; {where} …]"
    return "\n".join(part for part in (first, note, last) if part)


def _level(messages: Sequence[Message], now: Mapping[int, str], excess: int) -> dict[int, str]:
    """Cuts the longest of what must not be given up before to one common length, so that `excess` bytes are saved."""
    blocks = list(_blocks(messages, now))
    cap = _cap([size(now[i][start:end]) for i, start, end in blocks], excess)
    changed: dict[int, str] = {}
    for i, start, end in reversed(blocks):  # from the end, so that positions before it stay true
        text = changed.get(i, now[i])
        block = text[start:end]
        if size(block) > cap:
            keep = max(0, cap - 200) * len(block) // size(block)
            short = cut_text(block, keep - keep // 3, keep // 3, "the whole is on record")
            changed[i] = text[:start] + short + text[end:]
    return {i: text for i, text in changed.items() if size(text) < size(now[i])}


def _cap(sizes: Sequence[int], excess: int) -> int:
    """The common length to which the longest are cut, so that `excess` is saved; never less than the least."""
    ordered = sorted(sizes, reverse=True)
    for count, shorter in enumerate([*ordered[1:], 0], 1):
        if sum(ordered[:count]) - count * shorter >= excess:
            return max(_LEAST, (sum(ordered[:count]) - excess) // count)
    return _LEAST


def _blocks(messages: Sequence[Message], now: Mapping[int, str]) -> Iterator[tuple[int, int, int]]:
    """Returns the parts that are cut last: position, start and end of results and of the opening's fenced texts, in
    order."""
    results = set(_results(messages))
    opening = next((i for i, m in enumerate(messages) if m.role is Role.ASSISTANT), len(messages))
    for i, message in enumerate(messages):
        if i in results:
            yield i, 0, len(now[i])
        elif i < opening and message.role is Role.USER:
            yield from ((i, start, end) for start, end in _fenced(now[i]))


def _fenced(text: str) -> Iterator[tuple[int, int]]:
    place = 0
    while opening := _FENCE.search(text, place):
        end = text.find(f"\n<!-- {opening[1]}_END -->", opening.end())
        if end < 0:
            return
        yield opening.end(), end
        place = end
