"""Sets the garbage collector of a process.

Decision: reference counts free nearly all objects without a collection, so the youngest generation is collected less
often than Python does by default (each 700 objects). A program that starts makes two hundred thousand objects and
leaves them: collections took a tenth of its start. A call makes thousands that live as long as the call. Modules stay
to the end of a long-running process, so they are left out of every collection.
"""

import gc

YOUNGEST = 20_000
"""New objects until a collection of the youngest generation."""


def collect_less_often() -> None:
    """Collects new objects less often; called before a command imports what it needs."""
    gc.set_threshold(YOUNGEST, *gc.get_threshold()[1:])


def keep_modules() -> None:
    """Leaves what exists now out of collections; looking for garbage first costs more than the little that there is."""
    gc.freeze()
