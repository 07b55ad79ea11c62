"""How each built-in pattern recognizes its secrets: a pattern is a tag and a few rules, a rule is one regex.

A regex names what to replace by its groups (the first that took part), or is replaced whole. Rules bring their own
trigger, a near-literal for the first look, so that a regex runs only over texts that may hold what it seeks. No rule
looks far ahead for something optional: RE2 is linear for one search, and so is the sum of all searches of a text.
"""

from dataclasses import dataclass

from tarsy.masking.judges import (
    Judge,
    aws_secret,
    base64_short,
    base64_word,
    bearer,
    credential,
    docker_auth,
    email,
    flag,
    not_a_name,
    password,
    password_line,
    quoted_password,
    random_word,
    url_password,
    whole,
    working_directory,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One regex of a pattern.

    Args:
        trigger: What a text must hold for the regex to be worth running (RE2 syntax).
        regex: RE2 syntax, on bytes; its first group that took part is replaced.
        judge: Which part of it, if any.
        tag: What is written in its place, where it is not the pattern's tag.
        lines: Whether a match may span lines.
    """

    trigger: bytes
    regex: bytes
    judge: Judge = whole
    tag: str = ""
    lines: bool = False


# Between a key and its value: the key's closing quote (escaped as deep as it may be), and a colon or an equals sign.
_SEP = rb"""(?:\\*["'`])?[ \t]*(?:=>|:=|[:=])[ \t]*"""
_OPEN = rb"""(?:\\*["'`])?"""
_KEY_START = rb"(?:^|[^A-Za-z])"
# A value in quotes: plain, single, or inside a JSON string inside a JSON string. Then one without quotes.
_DOUBLE = rb'"((?:[^"\\\n]|\\[^\n])+)'
_SINGLE = rb"'((?:[^'\n]|'')+)"
_ESCAPED = rb'\\"((?:[^"\\\n]|\\\\(?:\\\\|\\"|[^\\"\n]))+)'
_DEEPER = rb'\\{2,}"([^"\\\n]+)'
_BARE = rb"""([^\s"'`\\][^\s"'`]*)"""
_QUOTED = rb"(?:" + b"|".join((_DOUBLE, _SINGLE, _ESCAPED, _DEEPER)) + rb")"
_LONG = rb"([A-Za-z0-9_\-.+/=~]{20,})"


def _named(key: bytes, value: bytes = _LONG) -> bytes:
    return rb"(?i)" + key + _SEP + _OPEN + value


def _near(key: bytes) -> bytes:
    return rb"(?i)" + key + rb"""\\*["'`]?[ \t]*[:=]"""


def _environment(key: bytes, judge: Judge = quoted_password) -> tuple[Rule, ...]:
    """`name: DB_PASSWORD`, `value: ...` of a container's environment, in YAML and JSON."""
    head = rb"""(?i)\bname\\*["']?[ ]?:[ ]?\\*["']?[\w.-]*""" + key + rb"""\\*["']?,?(?:\s|\\n)*\\*["']?value"""
    head += rb"""\\*["']?[ ]?:[ ]?"""
    trigger = rb"""(?i)\bname\\*["']?[ ]?:[ ]?\\*["']?[\w.-]*""" + key
    bare = rb"""([^\s"'`\\|>][^\n"'\\]*)"""
    return Rule(trigger, head + _QUOTED, judge, lines=True), Rule(trigger, head + bare, password_line, lines=True)


def _block(key: bytes) -> Rule:
    """`password: |` and the line after it."""
    head = rb"(?i)" + key + rb"""["']?:[ \t]+[|>][+-]?[ \t]*"""
    return Rule(head, head + rb"\r?\n[ \t]+([^\s-][^\n]*)", password_line, lines=True)


_PASSWORD_KEY = rb"(?:passw(?:or)?d|passphrase)"
_PWD_KEY = rb"pwd"
_PASS_KEY = rb"(?:_(?i:pass)|(?:^|[^A-Za-z])(?:(?i:(?:db|user|root|admin|smtp|ssh|ftp|my|sql)pass)|[Pp]ass)|[a-z]Pass)"
_PASS_TRIGGER = rb"""(?i)pass\\*["'`]?[ \t]*[:=]"""
_ANY_PASSWORD = rb"(?:passw(?:or)?d|passphrase|pwd|(?-i:[Pp]ass|_PASS))"  # `PASS:` is what tests print

PASSWORD = (
    Rule(_near(_PASSWORD_KEY), rb"(?i)" + _PASSWORD_KEY + _SEP + _QUOTED, quoted_password),
    Rule(
        rb"""(?i)(?:passw(?:or)?d|passphrase|pwd|pass)["']?:[ \t]""",
        rb"""(?im)^(?:[ \t>|+]|- )*["']?(?:[\w.-]*[_.-])?"""
        + _ANY_PASSWORD
        + rb"""["']?:[ \t]+([^\s"'{\[|>&*!#$][^\n]*)""",
        password_line,
    ),
    Rule(_near(_PASSWORD_KEY), rb"(?i)" + _PASSWORD_KEY + _SEP + _BARE, password),
    Rule(_near(_PWD_KEY), rb"(?i)" + _PWD_KEY + _SEP + _QUOTED, working_directory),
    Rule(_near(_PWD_KEY), rb"(?i)" + _PWD_KEY + _SEP + _BARE, working_directory),
    Rule(_PASS_TRIGGER, rb"(?m)(?:" + _PASS_KEY + rb"|(?:^|[^A-Za-z])PASS)" + _SEP + _QUOTED, quoted_password),
    Rule(_PASS_TRIGGER, rb"(?m)" + _PASS_KEY + _SEP + _BARE, password),
    Rule(rb"PASS[ \t]*=", rb"(?m)(?:^|[^A-Za-z])PASS[ \t]*=[ \t]*" + _OPEN + _BARE, password),
    Rule(rb"(?i)--pass", rb"""(?i)--(?:[a-z-]*-)?pass(?:word|wd|phrase)?[ \t]+["']?([^\s"'`\\-][^\s"'`\\]*)""", flag),
    Rule(rb"(?i)passw(?:or)?d>", rb"(?i)passw(?:or)?d>([^<\n]{6,})</", url_password),
    Rule(rb"\bcurl\b", rb"""\bcurl[ \t][^\n]{0,300}?[ \t](?:-u|--user)[ =]?["']?[^\s:"']+:([^\s"']+)""", url_password),
    _block(_PASSWORD_KEY),
    *_environment(_ANY_PASSWORD),
    Rule(
        rb"""://[^\s/"'@<>]*@""",
        rb"""(?i)\b[a-z][a-z0-9+.-]*://[^\s/:@"'`<>\\]*:([^\s/"'`<>\\]+)@""",
        url_password,
    ),
    Rule(
        rb"""://[^\s/"'@<>]*@""",
        rb"""(?i)\b[a-z][a-z0-9+.-]*://([A-Za-z0-9_\-.~%]{20,})@""",
    ),
    Rule(
        rb"\bmachine[ \t]+[^\s]+[ \t]+login[ \t]",
        rb"\bmachine[ \t]+[^\s]+[ \t]+login[ \t]+[^\s]+[ \t]+password[ \t]+([^\s]+)",
        flag,
    ),
    Rule(
        rb"\$(?:2[abxy]|1|5|6|apr1|y)\$",  # hashes of crypt(3), as in htpasswd and shadow files
        rb"\$(?:2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{53}|y\$[./A-Za-z0-9]+\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}"
        rb"|(?:1|5|6|apr1)\$(?:rounds=[0-9]+\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{22,86})",
    ),
    Rule(rb"@(?:tcp|unix)\(", rb"""[\w.-]+:([^\s/"'`<>\\]+)@(?:tcp|unix)\(""", url_password),
    Rule(rb'"auth\\*"', rb'"auth\\*"[ \t]*:[ \t]*\\*"([A-Za-z0-9+/]{4,}={0,2})\\*"', docker_auth),
    Rule(rb"\.docker(?:cfg|configjson)", rb"\.docker(?:cfg|configjson)" + _SEP + _OPEN + rb"([A-Za-z0-9+/]{8,}={0,2})"),
    Rule(rb"eyJhdXRocyI6", rb"\b(?:eyJhdXRocyI6)[A-Za-z0-9+/]{8,}={0,2}"),
    Rule(
        rb"ewo(?:gICJhdXRocyI|gICAgImF1dGhzI|JImF1dGhzI)",
        rb"\bewo(?:gICJhdXRocyI|gICAgImF1dGhzI|JImF1dGhzI)[A-Za-z0-9+/]{8,}={0,2}",
    ),
)  # fmt: skip

_KIND_OF_KEY = rb"(?:account|shared|access|service|master|auth|app|license|encryption|signing)"

API_KEY = (
    Rule(_near(rb"api[_-]?keys?"), _named(rb"api[_-]?keys?")),
    Rule(_near(rb"key"), _named(rb"(?:^|[^A-Za-z]|[a-z0-9]_)key"), random_word),
    Rule(_near(rb"key"), _named(_KIND_OF_KEY + rb"[_-]?key"), random_word),
    _block(rb"api[_-]?key"),
    *_environment(rb"api[_-]?key"),
    Rule(rb"AIza", rb"\bAIza[A-Za-z0-9_-]{35,}"),
    Rule(rb"\bsk-", rb"\bsk-[A-Za-z0-9_-]{20,}", not_a_name),
    Rule(rb"\b[rs]k_(?:live|test)_", rb"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    Rule(rb"\bSG\.", rb"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
)  # fmt: skip

TOKEN = (
    Rule(
        _near(rb"authorization"),
        rb"""(?i)authorization""" + _SEP + rb"""(?:\[\]string\{|\[)?""" + _OPEN
        + rb"""(?:bearer|basic|token|digest|negotiate|apikey|api-key|key|ntlm|oauth|splunk)[ \t]+([^\s"'`\\,;\]\[]+)""",
        credential,
    ),
    Rule(_near(rb"authorization"), _named(rb"authorization"), not_a_name),
    Rule(rb"(?i)bearer[ \t]+[A-Za-z0-9_\-.+/=~]", rb"(?i)\bbearer[ \t]+([A-Za-z0-9_\-.+/=~]{16,})", bearer),
    Rule(rb"(?i)basic[ \t]+[A-Za-z0-9+/]", rb"(?i)\bbasic[ \t]+([A-Za-z0-9+/]{8,}={0,2})", docker_auth),
    Rule(rb"eyJ[A-Za-z0-9_-]+\.", rb"\beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)+"),
    Rule(_near(rb"(?:token|bearer|jwt)"), _named(rb"(?:token|bearer|jwt)")),
    Rule(rb"(?i)--[a-z-]*token", rb"""(?i)--[a-z-]*token(?:=|[ \t]+)["']?([^\s"'`\\-][^\s"'`\\]*)""", flag),
    _block(rb"token"),
    *_environment(rb"(?:token|jwt)"),
    Rule(rb"\bgl[a-z]{2,7}-", rb"\bgl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_.-]{16,}"),
    Rule(rb"[?&]sig=", rb"[?&]sig=([A-Za-z0-9%+/_-]{40,}=?)"),
    Rule(rb"sha256~", rb"\bsha256~[A-Za-z0-9_-]{40,}"),
    Rule(
        rb"\bhv[sbr]\.|npm_|pypi-|\bhf_|dckr_pat_|dop_v1_",
        rb"\b(?:hv[sbr]\.[A-Za-z0-9_-]{24,}|npm_[A-Za-z0-9]{36}|pypi-AgE[A-Za-z0-9_-]{40,}|hf_[A-Za-z0-9]{30,}"
        rb"|dckr_pat_[A-Za-z0-9_-]{20,}|dop_v1_[0-9a-f]{64})",
    ),
)  # fmt: skip

# A PEM block never holds five dashes; a block that was cut off is masked as far as its base64 goes.
_PEM_BODY = rb"(?:[^-]|-{1,4}[^-])*"
_PEM_BREAK = rb"(?:\s|\\+[nrt])"
_PEM_CUT = (
    rb"(?:" + _PEM_BREAK + rb"*(?:Proc-Type|DEK-Info): ?[A-Za-z0-9,-]+)*(?:" + _PEM_BREAK + rb"*[A-Za-z0-9+/=]{16,})+"
)


def _pem(kind: bytes) -> Rule:
    begin, end = rb"-----BEGIN " + kind + rb"-----", rb"-----END " + kind + rb"-----"
    return Rule(rb"-----BEGIN ", rb"(?:" + begin + _PEM_BODY + end + rb"|" + begin + _PEM_CUT + rb")", lines=True)


# A private key whose beginning was cut off, as the last lines of a log are.
_PEM_END = Rule(
    rb"-----END [A-Z0-9 ]*PRIVATE KEY",
    rb"(?:[A-Za-z0-9+/=]{16,}" + _PEM_BREAK + rb"*)+-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----",
    lines=True,
)

CERTIFICATE = (
    _pem(rb"[A-Z0-9 ]+"),
    _PEM_END,
    Rule(rb"LS0tLS1CRUdJTi", rb"\bLS0tLS1CRUdJTi[A-Za-z0-9+/]{20,}={0,2}"),
    Rule(rb"client-certificate-data", _named(rb"client-certificate-data", rb"([A-Za-z0-9+/]{20,}={0,2})")),
)

CERTIFICATE_AUTHORITY_DATA = (
    Rule(
        rb"(?i)certificate-authority-data",
        _named(rb"certificate-authority-data", rb"([A-Za-z0-9+/]{20,}={0,2})"),
    ),
    Rule(
        rb"(?i)client-key-data",
        _named(rb"client-key-data", rb"([A-Za-z0-9+/]{20,}={0,2})"),
        tag="[MASKED_PRIVATE_KEY]",
    ),
)

PRIVATE_KEY = (
    _pem(rb"[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?"),
    _PEM_END,
    Rule(_near(rb"private[_-]?key"), _named(rb"private[_-]?key")),
    Rule(rb"(?i)client-key-data", _named(rb"client-key-data", rb"([A-Za-z0-9+/]{20,}={0,2})")),
    *_environment(rb"private[_-]?key"),
)

SECRET_KEY = (
    Rule(_near(rb"secret[_-]key(?:_base)?"), _named(rb"secret[_-]key(?:_base)?")),
    Rule(_near(rb"secretkey"), _named(rb"secretkey"), not_a_name),  # a name in an ExternalSecret
    Rule(
        _near(rb"[_-]?secret"),
        _named(rb"(?:client|app|consumer|shared|webhook|signing|jwt|hmac|session|cookie)[_-]?secret"),
        not_a_name,
    ),
    *_environment(rb"secret(?:[_-]?key(?:_base)?)?"),
)

AWS_ACCESS_KEY = (
    Rule(rb"A[KS]IA", rb"\bA[KS]IA[A-Z0-9]{16}\b"),
    Rule(rb"(?i)aws_access_key_id", _named(rb"aws_access_key_id", rb"([A-Z0-9]{16,})")),
)

AWS_SECRET_KEY = (
    Rule(
        _near(rb"secret_?(?:access_?)?key(?:_id)?"),
        _named(rb"(?:aws_?)?secret_?(?:access_?)?key(?:_id)?", rb"([A-Za-z0-9/+]{40})"),
    ),
    Rule(
        rb"(?:\A|[^A-Za-z0-9/+])[A-Za-z0-9/+]{40}(?:[^A-Za-z0-9/+=]|\z)",
        rb"(?:\A|[^A-Za-z0-9/+])([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|\z)",
        aws_secret,
    ),
)

GITHUB_TOKEN = (
    Rule(rb"gh[opsru]_[A-Za-z0-9_]", rb"gh[opsru]_[A-Za-z0-9_]{36,}"),
    Rule(rb"github_pat_", rb"github_pat_[A-Za-z0-9_]{22,}"),
    Rule(_near(rb"(?:github|gh)[_-]?(?:pat|token)"), _named(rb"(?:github|gh)[_-]?(?:pat|token)")),
    *_environment(rb"(?:github|gh)_?(?:pat|token)"),
)

SLACK_TOKEN = (
    Rule(rb"xox[a-z]", rb"xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}"),
    Rule(rb"xapp-", rb"\bxapp-\d-[A-Za-z0-9-]{10,}"),
    Rule(rb"hooks\.slack\.com", rb"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{8,})"),
)

EMAIL = (
    Rule(rb"[A-Za-z0-9._%+-]@[A-Za-z0-9.-]+\.[A-Za-z]{2}", rb"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}", email),
)

SSH_KEY = (
    Rule(
        rb"(?:ssh-|ecdsa-sha2-|@openssh)",
        rb"\b(?:sk-)?(?:ssh-(?:rsa|dss|ed25519|ecdsa)|ecdsa-sha2-nistp\d+)(?:@openssh\.com)?[ \t]+"
        rb"[A-Za-z0-9+/]{20,}={0,3}",
    ),
)

BASE64_SECRET = (Rule(rb"[A-Za-z0-9+/]{20}", rb"(?:(?i:sha)[0-9]{1,3}[:-])?[A-Za-z0-9+/]{20,}={0,2}", base64_word),)

# Four characters of base64 that are three characters of ASCII: the class of each character follows from that, so RE2
# itself passes over nearly every ordinary word.
_TEXT = rb"(?:[I-Za-f][C-HS-Xi-ny-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/])"
_SHORT = rb"(" + _TEXT + rb"{1,4}|[A-Za-z0-9+/]{2,18}={1,2})"

BASE64_SHORT = (
    Rule(
        rb""":[ \t]+\\*["']?""" + _SHORT,
        rb""":[ \t]+\\*["']?""" + _SHORT + rb"""(?:\\*["']|[\s,}]|\z)""",
        base64_short,
    ),
)
