"""Declares the built-in patterns and groups, in the order in which they run.

The names and groups are part of the configuration and do not change. New kinds of secrets are added to the pattern that
they fit (a JWT is a `token`, the password of a URL a `password`), so they need no change of configurations.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tarsy.masking import rules
from tarsy.masking.rules import Rule

STRUCTURAL = "kubernetes_secret"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A built-in pattern.

    Args:
        name: Name in configurations.
        tag: Replacement of matches.
        rules: Rules that find matches.
    """

    name: str
    tag: str
    rules: tuple[Rule, ...]


_ALL = (
    Pattern("api_key", "[MASKED_API_KEY]", rules.API_KEY),
    Pattern("password", "[MASKED_PASSWORD]", rules.PASSWORD),
    Pattern("certificate", "[MASKED_CERTIFICATE]", rules.CERTIFICATE),
    Pattern("certificate_authority_data", "[MASKED_CA_CERTIFICATE]", rules.CERTIFICATE_AUTHORITY_DATA),
    Pattern("token", "[MASKED_TOKEN]", rules.TOKEN),
    Pattern("email", "[MASKED_EMAIL]", rules.EMAIL),
    Pattern("ssh_key", "[MASKED_SSH_KEY]", rules.SSH_KEY),
    Pattern("private_key", "[MASKED_PRIVATE_KEY]", rules.PRIVATE_KEY),
    Pattern("secret_key", "[MASKED_SECRET_KEY]", rules.SECRET_KEY),
    Pattern("aws_access_key", "[MASKED_AWS_KEY]", rules.AWS_ACCESS_KEY),
    Pattern("aws_secret_key", "[MASKED_AWS_SECRET]", rules.AWS_SECRET_KEY),
    Pattern("github_token", "[MASKED_GITHUB_TOKEN]", rules.GITHUB_TOKEN),
    Pattern("slack_token", "[MASKED_SLACK_TOKEN]", rules.SLACK_TOKEN),
    Pattern("base64_secret", "[MASKED_BASE64_VALUE]", rules.BASE64_SECRET),
    Pattern("base64_short", "[MASKED_SHORT_BASE64]", rules.BASE64_SHORT),
)

PATTERNS: Mapping[str, Pattern] = MappingProxyType({pattern.name: pattern for pattern in _ALL})

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "basic": ("api_key", "password"),
        "secrets": ("api_key", "password", "token", "private_key", "secret_key"),
        "security": (
            "api_key",
            "password",
            "token",
            "certificate",
            "certificate_authority_data",
            "email",
            "ssh_key",
        ),
        "kubernetes": (STRUCTURAL, "api_key", "password", "certificate_authority_data"),
        "cloud": ("aws_access_key", "aws_secret_key", "api_key", "token"),
        "all": (STRUCTURAL, *PATTERNS),
    }
)
