"""How each built-in pattern recognizes its secrets: a pattern is a tag and a few rules, a rule is one regex.

A regex names what to replace by its groups (the first that took part), or is replaced whole. Rules bring their own
trigger, a near-literal for the first look, so that a regex runs only over texts that may hold what it seeks. No rule
looks far ahead for something optional: RE2 is linear for one search, and so is the sum of all searches of a text.
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
