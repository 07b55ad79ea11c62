"""Masks secrets in all untrusted text: alerts, runbooks, tool results, output of models.

    masker = build_masker(["kubernetes", "security"])
    masker.mask("password: hunter22")      # "password: [MASKED_PASSWORD]"

Matches become `[MASKED_X]`. `kubernetes_secret` runs first, then the patterns of the groups, single patterns, custom
ones. Decision: nothing is parsed. Tool results are truncated, indented, quoted, logged and nested, so Secrets are found
by keys and their depth (`yaml_context.py`), and values are replaced in place: all other bytes are unchanged, and masked
YAML or JSON still parses to the same shape.

| pattern | finds | tag |
|---|---|---|
| kubernetes_secret | data and stringData of Secret, SecretList, items of lists; YAML, JSON, documents within strings | MASKED_SECRET_DATA |
| api_key | api_key, apikey and a key of at least 20 characters; `key` and `*_key` if it looks random; AIza, sk-, sk_live_, SG. | MASKED_API_KEY |
| password | password and its like in 30 languages, of at least 6; in URLs, DSNs, env entries, XML, directives, prose with a digit; arguments of commands; hashes; .pgpass, .netrc, Docker auths; base64 of `password=` | MASKED_PASSWORD |
| certificate | any PEM block (keys too), cut off at either end or both, escaped, or in base64; PuTTY, age, JWK; client-certificate-data | MASKED_CERTIFICATE |
| certificate_authority_data | certificate-authority-data; client-key-data (as MASKED_PRIVATE_KEY) | MASKED_CA_CERTIFICATE |
| token | token, bearer, jwt of at least 20, shorter ones with digits; --token; Authorization, cookies, X-API-Key and other headers; JWTs, also over lines; bootstrap tokens; tokens of about 90 vendors | MASKED_TOKEN |
| email | e-mail addresses | MASKED_EMAIL |
| ssh_key | SSH public keys | MASKED_SSH_KEY |
| private_key, secret_key | those keys of at least 20 characters; PEM private keys; client secrets | MASKED_PRIVATE_KEY, MASKED_SECRET_KEY |
| aws_access_key | AKIA and ASIA with 16 characters | MASKED_AWS_KEY |
| aws_secret_key | aws_secret_access_key with 40 characters; lone words of 40 that look drawn | MASKED_AWS_SECRET |
| github_token | ghp_ gho_ ghu_ ghs_ ghr_ github_pat_; github_token with any value | MASKED_GITHUB_TOKEN |
| slack_token | xox?-, xapp-, webhook addresses | MASKED_SLACK_TOKEN |
| base64_secret | base64 words of at least 20 characters that look encoded | MASKED_BASE64_VALUE |
| base64_short | `: ` and a base64 word of 4 to 19 that decodes to text | MASKED_SHORT_BASE64 |

Decoded lines are searched too (`disguise.py`): percent-encoding, `\\u0022`, entities, invisible and full-width
characters. Secrets are then replaced in the original line.

Groups: basic (api_key, password), secrets (basic, token, private_key, secret_key), security (basic, token, certificate,
certificate_authority_data, email, ssh_key), kubernetes (basic, kubernetes_secret, certificate_authority_data), cloud
(aws_*, api_key, token), all.
"""  # noqa: E501

from tarsy.masking.custom_patterns import CustomPattern
from tarsy.masking.errors import InvalidPattern, MaskingError, MaskingFailed
from tarsy.masking.failure_policy import (
    MOST_ON_LOOP,
    MaskingOutcome,
    mask_or_fail,
    masking_size,
    off_loop,
    without_secrets_or_withheld,
)
from tarsy.masking.masker import Masker, build_masker, default_masker
from tarsy.masking.maskers import Maskers, PatternFault, Setting, faults, usable
from tarsy.masking.streaming_masker import StreamingMasker
from tarsy.resources.v1alpha1.masking import DEFAULT_GROUPS, DEFAULT_PATTERNS

__all__ = [
    "DEFAULT_GROUPS",
    "DEFAULT_PATTERNS",
    "MOST_ON_LOOP",
    "CustomPattern",
    "InvalidPattern",
    "Masker",
    "Maskers",
    "MaskingError",
    "MaskingFailed",
    "MaskingOutcome",
    "PatternFault",
    "Setting",
    "StreamingMasker",
    "build_masker",
    "default_masker",
    "faults",
    "mask_or_fail",
    "masking_size",
    "off_loop",
    "usable",
    "without_secrets_or_withheld",
]
