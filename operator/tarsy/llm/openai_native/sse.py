"""Parses server-sent events from the bytes of a response.

Only data matters here, so an event is its data and everything else is read over: comments (keep-alives), `event:`,
`id:`, `retry:`. One name is more: llama.cpp sends its errors as `error: {...}`, which becomes `{"error": {...}}`, the
shape in which everybody else sends them. `tarsy.outbound.server_sent_events`, which reads all of it, takes three to
eight times the CPU for an event, and here each token is one.
"""


class EventTooLong(Exception):
    """A server sent an event, or a line, longer than the limit."""


class EventParser:
    """Parses bytes in pieces of any size, and returns the data of each complete event.

    Args:
        limit: bytes; the most of one event's data lines, their names included, and of a line that has not ended.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._carriage_return = False
        self._first = True

    def feed(self, block: bytes) -> list[bytes]:
        """The events that `block` completes; raises EventTooLong."""
        if (whole := self._whole(block)) is not None:
            return whole
        if self._carriage_return and block:
            # A line may end in CR, LF or CR LF, and a block between those two.
            block, self._carriage_return = block.removeprefix(b"\n"), False
        if b"\r" in block:
            self._carriage_return = block.endswith(b"\r")
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *lines = block.split(b"\n")
        self._line += first
        if not lines:
            self._check(len(self._line))
            return []
        rest = lines.pop()
        events: list[bytes] = []
        self._take(bytes(self._line), events)
        for line in lines:
            self._take(line, events)
        self._line = bytearray(rest)
        self._check(len(rest))
        return events

    def _whole(self, block: bytes) -> list[bytes] | None:
        """The events of what nearly all packets of nearly all servers are: whole events of one data line each."""
        if self._line or self._data or self._carriage_return or self._first or len(block) > self._limit:
            return None
        if not (block.startswith(b"data: ") and block.endswith(b"\n\n")) or b"\r" in block:
            return None
        events = block[6:-2].split(b"\n\ndata: ")
        return events if block.count(b"\n") == 2 * len(events) else None

    def end(self) -> list[bytes]:
        """The last event, where a server left out the empty line after it; raises EventTooLong."""
        events: list[bytes] = []
        self._take(bytes(self._line), events)
        self._take(b"", events)
        self._line.clear()
        return events

    def _take(self, line: bytes, events: list[bytes]) -> None:
        if self._first:
            line, self._first = line.removeprefix(b"\xef\xbb\xbf"), False
        if not line:
            if self._data:
                events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data, self._size = [], 0
        elif line.startswith(b"data:"):
            self._check(len(line))
            self._size += len(line)
            self._data.append(line[6:] if line.startswith(b" ", 5) else line[5:])
        elif line.startswith(b"error:"):
            self._check(len(line))
            self._size += len(line)
            self._data.append(b'{"error":' + line[6:] + b"}")

    def _check(self, more: int) -> None:
        if self._size + more > self._limit:
            raise EventTooLong(f"an event of more than {self._limit} bytes")
