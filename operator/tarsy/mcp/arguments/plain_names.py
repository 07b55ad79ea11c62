"""Compares names of tools and parameters as models write them."""


def plain_name(name: str) -> str:
    """Reduces a name to its letters and digits in lower case: case and separators do not count."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())
