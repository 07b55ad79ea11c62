"""Named SQL, read from the `.sql` files beside this module.

A file is a sequence of `-- name: what` blocks. A block whose name begins with an underscore is a fragment, and
`{_fragment}` in a later block stands for its text: the fence and the timeline are written once and are the same
text in every step. Nothing else is ever put into a statement; values travel as parameters.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_BLOCK = re.compile(r"^-- name: (\w+)[ \t]*\n", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)


@cache
def load(name: str) -> Mapping[str, str]:
    """The statements of `sql/<name>.sql` by name, fragments put in."""
    parts = _BLOCK.split(files("tarsy.store").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8"))
    blocks: dict[str, str] = {}
    for key, text in zip(parts[1::2], parts[2::2], strict=True):
        statement = _COMMENT.sub("", text).strip()
        for fragment, body in blocks.items():
            statement = statement.replace(f"{{{fragment}}}", body)
        blocks[key] = statement
    return {key: text for key, text in blocks.items() if not key.startswith("_")}
