"""Loads the text templates, each once.

Values are inserted with `string.Template`: nothing in a value is ever interpreted, and a value that is missing is an
error when the text is made, not a hole in it.
"""

from functools import cache
from importlib.resources import files
from string import Template


@cache
def template(name: str) -> Template:
    """The template file `name`.txt."""
    return Template(files("tarsy.engine.prompts").joinpath("templates", f"{name}.txt").read_text("utf-8").strip())
