"""Declares the rules of the built-in patterns: a pattern is a tag and a few rules, a rule is one regex.

The first matching group of a regex is replaced, or the whole match without groups. Each rule has a trigger, a
near-literal for the first pass, so that its regex runs only on texts that may match. No rule scans far ahead for
optional text, so that all searches of a text together are linear, like a single search of RE2.
"""

from tarsy.masking.rules.keys import CERTIFICATE, CERTIFICATE_AUTHORITY_DATA, PRIVATE_KEY, SECRET_KEY, SSH_KEY
from tarsy.masking.rules.parts import Rule
from tarsy.masking.rules.passwords import PASSWORD
from tarsy.masking.rules.tokens import (
    API_KEY,
    AWS_ACCESS_KEY,
    AWS_SECRET_KEY,
    BASE64_SECRET,
    BASE64_SHORT,
    EMAIL,
    GITHUB_TOKEN,
    SLACK_TOKEN,
    TOKEN,
)

__all__ = [
    "API_KEY",
    "AWS_ACCESS_KEY",
    "AWS_SECRET_KEY",
    "BASE64_SECRET",
    "BASE64_SHORT",
    "CERTIFICATE",
    "CERTIFICATE_AUTHORITY_DATA",
    "EMAIL",
    "GITHUB_TOKEN",
    "PASSWORD",
    "PRIVATE_KEY",
    "SECRET_KEY",
    "SLACK_TOKEN",
    "SSH_KEY",
    "TOKEN",
    "Rule",
]
