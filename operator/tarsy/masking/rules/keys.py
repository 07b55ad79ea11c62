"""Declares rules for keys and certificates: PEM blocks, whole or truncated, bodies without header, other formats."""

from tarsy.masking.drawn import key_body, key_lines, vendor
from tarsy.masking.rules.parts import Rule, environment, named, near
from tarsy.masking.validators import not_a_name

# A PEM block never holds five dashes; a block that was cut off is masked as far as its base64 goes. Blanks, breaks and
# marks may be percent-encoded, as in a URL. What is encoded otherwise is decoded before (`disguise`).
_PEM_BODY = rb"(?:[^-]|-{1,4}[^-])*"
_PEM_BLANK = rb"(?:[ +]|%20)"
_PEM_WORDS = rb"(?:[A-Z0-9 +]|%20)"
_PEM_WORD = rb"(?:[A-Za-z0-9+/=]|%2[BbFf]|%3[Dd]){16,}"
_BREAK = rb"(?:\s|\\+[nrt])"
_PEM_BREAK = rb"(?:\s|\\+[nrt]|%0[AaDd])"
_PEM_HEADER = rb"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): ?[A-Za-z0-9,. ()+-]+"
_PEM_CUT = (
    rb"(?:" + _PEM_BREAK + rb"*" + _PEM_HEADER + rb")*"
    rb"(?:" + _PEM_BREAK + rb"*(?:" + _PEM_WORD + rb"|\[MASKED_(?:CERTIFICATE|PRIVATE_KEY)\]))+"
)
_LINE_BREAK = rb"(?:(?:\r?\n|(?:\\+[nrt])+)[ \t>|]*)"


def _pem(kind: bytes) -> Rule:
    begin = rb"-----BEGIN" + _PEM_BLANK + kind + rb"-----"
    end = rb"-----END" + _PEM_BLANK + kind + rb"-----"
    return Rule(
        rb"-----BEGIN(?:[ +]|%20)", rb"(?:" + begin + _PEM_BODY + end + rb"|" + begin + _PEM_CUT + rb")", lines=True
    )


# A private key whose beginning was cut off, as the last lines of a log are.
_PRIVATE = _PEM_WORDS + rb"*PRIVATE" + _PEM_BLANK + rb"KEY"
_PRIVATE_END = rb"-----END" + _PEM_BLANK + _PRIVATE
_PEM_END = Rule(
    _PRIVATE_END,
    rb"(?:" + _PEM_WORD + _PEM_BREAK + rb"*)+" + _PRIVATE_END + rb"(?:" + _PEM_BLANK + rb"BLOCK)?-----",
    lines=True,
)
# Lines of a key of which neither beginning nor end is there: of 60 to 80 characters, the last one shorter.
_BODIES = (
    Rule(
        rb"[A-Za-z0-9+/]{60}[A-Za-z0-9+/]*" + _LINE_BREAK + rb"[A-Za-z0-9+/]",
        rb"(?:^|[^A-Za-z0-9+/=])(?:[A-Za-z0-9+/]{60,80}" + _LINE_BREAK + rb")+[A-Za-z0-9+/]{1,80}={0,2}"
        rb"""(?:[ \t"'\\\r\n]|\z)""",
        key_lines,
        lines=True,
        counts=True,
    ),
    Rule(
        rb"(?m)^[ \t>|]*[A-Za-z0-9+/]{60}",
        rb"(?m)^[ \t>|]*([A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{70}|[A-Za-z0-9+/]{76})[ \t]*\r?$",
        key_body,
        counts=True,
    ),
    Rule(
        rb"M(?:II[A-Z]|IG[A-Z]|HcCAQEE|C4CAQAw|EECAQ)",
        rb"(?:^|[^A-Za-z0-9+/])(M(?:II[A-Z]|IG[A-Z]|HcCAQEE|C4CAQAw|EECAQ)[A-Za-z0-9+/]{40,}={0,2})",
        key_body,
    ),
    Rule(rb"b3BlbnNzaC1rZXk", rb"b3BlbnNzaC1rZXk[A-Za-z0-9+/]{20,}={0,2}"),
    Rule(
        rb"Private-Lines: ",
        rb"Private-Lines: [0-9]+"
        + _BREAK
        + rb"+((?:[A-Za-z0-9+/]{10,}={0,2}"
        + _BREAK
        + rb"+)*[A-Za-z0-9+/]{10,}={0,2})",
        lines=True,
    ),
    Rule(rb"Private-(?:MAC|Hash): ", rb"Private-(?:MAC|Hash): ([0-9a-f]{32,})"),
    Rule(rb"AGE-(?:SECRET-KEY|PLUGIN)", rb"AGE-(?:SECRET-KEY-(?:PQ-)?|PLUGIN-[A-Z0-9]+-)1[A-Z0-9]{30,}"),
    Rule(
        rb"""\\*"(?:d|dp|dq|qi|k)\\*"[ \t]*:""",
        rb"""\\*"(?:d|dp|dq|qi|k)\\*"[ \t]*:[ \t]*\\*"([A-Za-z0-9_-]{40,})\\*\"""",
        vendor,
    ),
    Rule(near(rb"pre[_-]?shared[_-]?key"), named(rb"pre[_-]?shared[_-]?key")),
)

CERTIFICATE = (
    _pem(_PEM_WORDS + rb"+"),
    _PEM_END,
    *_BODIES,
    Rule(rb"LS0tLS1CRUdJTi", rb"\bLS0tLS1CRUdJTi[A-Za-z0-9+/]{20,}={0,2}"),
    Rule(rb"client-certificate-data", named(rb"client-certificate-data", rb"([A-Za-z0-9+/]{20,}={0,2})")),
)

_CLIENT_KEY = named(rb"client-key-data", rb"([A-Za-z0-9+/]{20,}={0,2})")

CERTIFICATE_AUTHORITY_DATA = (
    Rule(
        rb"(?i)certificate-authority-data",
        named(rb"certificate-authority-data", rb"([A-Za-z0-9+/]{20,}={0,2})"),
    ),
    Rule(rb"(?i)client-key-data", _CLIENT_KEY, tag="[MASKED_PRIVATE_KEY]"),
)

PRIVATE_KEY = (
    _pem(_PRIVATE + rb"(?:" + _PEM_BLANK + rb"BLOCK)?"),
    _PEM_END,
    *_BODIES,
    Rule(near(rb"private[_-]?key"), named(rb"private[_-]?key")),
    Rule(rb"(?i)client-key-data", _CLIENT_KEY),
    *environment(rb"private[_-]?key"),
)

_NAMED_SECRET = rb"(?:client|app|consumer|shared|webhook|signing|jwt|hmac|session|cookie)[_-]?secret"

SECRET_KEY = (
    Rule(near(rb"secret[_-]key(?:_base)?"), named(rb"secret[_-]key(?:_base)?")),
    Rule(near(rb"secretkey"), named(rb"secretkey"), not_a_name),  # a name in an ExternalSecret
    Rule(near(rb"[_-]?secret"), named(_NAMED_SECRET), not_a_name),
    *environment(rb"secret(?:[_-]?key(?:_base)?)?"),
)

SSH_KEY = (
    Rule(
        rb"(?:ssh-|ecdsa-sha2-|@openssh)",
        rb"\b(?:sk-)?(?:ssh-(?:rsa|dss|ed25519|ecdsa)|ecdsa-sha2-nistp\d+)(?:@openssh\.com)?[ \t]+"
        rb"[A-Za-z0-9+/]{20,}={0,3}",
    ),
)
