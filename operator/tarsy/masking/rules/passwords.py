"""Declares rules for passwords: in settings, environments, documents, prose, directives, account files, hashes."""

import base64

from tarsy.masking.drawn import docker_auth, encoded_pair
from tarsy.masking.rules import languages
from tarsy.masking.rules.commands import COMMANDS
from tarsy.masking.rules.parts import (
    BARE,
    LONG_BARE,
    OPEN,
    QUOTED,
    SEP,
    Rule,
    block,
    environment,
    near_bare,
    near_quoted,
    node,
)
from tarsy.masking.rules.urls import URLS
from tarsy.masking.validators import (
    bare_directory,
    bare_password,
    config_word,
    flag,
    next_line,
    password,
    password_line,
    quoted_password,
    spoken,
    spoken_of,
    url_password,
    working_directory,
)

_PASSWORD_KEY = rb"(?:passw(?:or)?d|passphrase|requirepass|masterauth)"
_SUFFIXED_KEY = rb"passw(?:or)?d(?:[_-]?[0-9]{1,2}|[_-]?confirm(?:ation|ed)?|[_-]?hash)"
_FOREIGN_KEY = (
    rb"(?:(?:" + languages.ASCII + rb")(?:[_-]?[0-9]{1,2})?|" + languages.OTHER + rb"|" + _SUFFIXED_KEY + rb")"
)
_SPOKEN_KEY = rb"(?:passw(?:or)?d|passphrase|" + languages.ASCII + rb"|" + languages.OTHER + rb")"
_PWD_KEY = rb"pwd"
_PASS_KEY = rb"(?:_(?i:pass)|(?:^|[^A-Za-z])(?:(?i:(?:db|user|root|admin|smtp|ssh|ftp|my|sql)pass)|[Pp]ass)|[a-z]Pass)"
_PASS_TRIGGER = rb"""(?i)pass\\*["'`]?[ \t]*[:=]"""
# `PASS:` is what tests print
_ANY_PASSWORD = rb"(?:" + _PASSWORD_KEY + rb"|pwd|(?-i:[Pp]ass|_PASS))"
_SECRET_NAME = rb"(?:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key)"
_DIRECTIVE = (
    rb"(?:requirepass|masterauth|bindpw|bind_?password|rootpw|auth_pass|sasl_passwd|olcRootPW:?"
    rb"|enable[ \t]+(?:secret|password)(?:[ \t]+[0-9])?|snmp-server[ \t]+community|set[ \t]+password)"
)


def _aligned(word: bytes) -> tuple[bytes, ...]:
    """Returns the base64 characters that encode a word at each of the three alignments."""
    whole = base64.b64encode
    return (
        whole(word)[: len(word) * 8 // 6],
        whole(b"\0" + word)[2 : (len(word) + 1) * 8 // 6],
        whole(b"\0\0" + word)[3 : (len(word) + 2) * 8 // 6],
    )


_ENCODED = b"|".join(
    part.replace(b"+", rb"\+")
    for word in (b"password", b"passwd", b"secret", b"token", b"api_key", b"apikey", b"apiKey", b"kind: Secret")
    for cased in dict.fromkeys((word, word.upper(), word.capitalize()))
    for part in _aligned(cased)
)


def _keyed(key: bytes) -> tuple[Rule, ...]:
    """Builds rules for a quoted and a bare password after its key."""
    return (
        Rule(near_quoted(key), rb"(?i)" + key + SEP + QUOTED, quoted_password),
        Rule(near_bare(key), rb"(?i)" + key + SEP + BARE, password),
    )


def _line(key: bytes) -> Rule:
    """Builds the rule of a password that is the rest of a YAML line."""
    return Rule(
        rb"(?i)" + key + rb"""["']?:[ \t]+[^\s"'{\[|>&*!#$]""",
        rb"""(?im)^(?:[ \t>|+]|- )*["']?(?:[\w.-]*[_.-])?""" + key + rb"""["']?:[ \t]+([^\s"'{\[|>&*!#$][^\n]*)""",
        password_line,
    )


def _below(key: bytes) -> Rule:
    """Builds the rule of a password on the line after its key."""
    return Rule(
        rb"(?i)" + key + rb"""["']?:[ \t]*\r?\n""",
        rb"(?im)" + key + rb"""["']?:[ \t]*\r?\n[ \t]+["']?([^\s"'#{\[>|&*!-][^\n:"']*)["']?[ \t]*\r?$""",
        next_line,
        lines=True,
    )


PASSWORD = (
    *node(rb"(?:" + _FOREIGN_KEY + rb"|" + _PASSWORD_KEY + rb"|pwd|(?:^|[^A-Za-z])pass)"),
    *_keyed(_FOREIGN_KEY),
    _line(_FOREIGN_KEY),
    *block(_FOREIGN_KEY),
    _below(_FOREIGN_KEY),
    *environment(_FOREIGN_KEY),
    Rule(near_quoted(_PASSWORD_KEY), rb"(?i)" + _PASSWORD_KEY + SEP + QUOTED, quoted_password),
    _line(_ANY_PASSWORD),
    Rule(near_bare(_PASSWORD_KEY), rb"(?i)" + _PASSWORD_KEY + SEP + LONG_BARE, bare_password),
    Rule(near_quoted(_PWD_KEY), rb"(?i)" + _PWD_KEY + SEP + QUOTED, working_directory),
    Rule(near_bare(_PWD_KEY), rb"(?i)" + _PWD_KEY + SEP + LONG_BARE, bare_directory),
    Rule(_PASS_TRIGGER, rb"(?m)(?:" + _PASS_KEY + rb"|(?:^|[^A-Za-z])PASS)" + SEP + QUOTED, quoted_password),
    Rule(_PASS_TRIGGER, rb"(?m)" + _PASS_KEY + SEP + BARE, password),
    Rule(rb"PASS[ \t]*=", rb"(?m)(?:^|[^A-Za-z])(?:SSH)?PASS[ \t]*=[ \t]*" + OPEN + BARE, password),
    Rule(
        rb"(?i)REDISCLI_AUTH|\b(?:[a-z]+_)?psk\b|wpa_passphrase",
        rb"""(?i)(?:REDISCLI_AUTH|\b(?:[a-z]+_)?psk|wpa_passphrase)""" + SEP + OPEN + BARE,
        password,
    ),
    Rule(rb"(?i)passw(?:or)?d>", rb"(?i)passw(?:or)?d>([^<\n]{6,})</", url_password),
    Rule(
        rb"(?i)<[A-Za-z0-9:._-]*" + _SECRET_NAME + rb"[ \t>]",
        rb"""(?i)<[A-Za-z0-9:._-]*""" + _SECRET_NAME + rb"""(?:[ \t][^<>\n]*)?>([^<\s][^<\n]{5,})</""",
        url_password,
    ),
    Rule(
        rb"""(?i)(?:name|key)=["'][^"'<>\n]*""" + _SECRET_NAME + rb"""["']""",
        rb"""(?i)\b(?:name|key)=["'][^"'<>\n]*""" + _SECRET_NAME + rb"""["'][^<>\n]*>([^<\s]{6,})</""",
        url_password,
    ),
    Rule(
        rb"""\bvalue=["']""",
        rb"""(?i)<[^<>\n]*\bvalue=["']([^"'\n]+)["'][^<>\n]*\b(?:name|key)=["'][^"'\n]*"""
        + _SECRET_NAME + rb"""["']""",
        quoted_password,
    ),
    Rule(
        rb"(?i)(?:passw(?:or)?d|passphrase|passwort|kennwort)[ \t]+(?:is|was|are|ist|lautet|war)\b",
        rb"(?i)(?:passw(?:or)?d|passphrase|passwort|kennwort)[ \t]+(?:is|was|are|ist|lautet|war)"
        rb"(?:[ \t]+(?:now|set to))?:?[ \t]+" + OPEN + rb"""([^\s"'`]+)""",
        spoken,
    ),
    Rule(rb"(?i)\b" + _DIRECTIVE + rb"[ \t]", rb"(?i)\b" + _DIRECTIVE + rb"""[ \t]+["']?([^\s"']+)""", config_word),
    Rule(rb"\bstats[ \t]+auth\b", rb"\bstats[ \t]+auth[ \t]+[^\s:]+:(\S+)", flag),
    Rule(
        rb"\buser[ \t]+[^\s]+[ \t]+(?:on|off)\b",  # of Redis
        rb"\buser[ \t]+[^\s]+[ \t]+(?:on|off)[ \t]+(?:(?:[~+&%@-]|nopass|reset|sanitize)[^\s]*[ \t]+)*>([^\s]+)",
        flag,
    ),
    Rule(
        rb"(?i)\b(?:ENV|ARG|export|setenv|setx|set)[ \t]+\w*(?:passw(?:or)?d|secret|token|api_?key)",
        rb"(?i)\b(?:ENV|ARG|setenv|setx)[ \t]+\w*(?:passw(?:or)?d|secret|token|api_?key)\w*[ \t]+" + OPEN + BARE,
        config_word,
    ),
    Rule(
        rb"""(?i)\b(?:identified[ \t]+(?:with|by|as)\b|password(?:[ \t]+|[ \t]*\([ \t]*)['"])""",
        rb"(?i)\b(?:identified[ \t]+(?:with[ \t]+[^\s]+[ \t]+)?(?:by|as)(?:[ \t]+password)?[ \t]+"
        rb"|password(?:[ \t]+|[ \t]*\([ \t]*))"
        rb"""(?:'((?:[^'\n]|'')+)'|"([^"\n]+)")""",
        quoted_password,
    ),
    Rule(
        rb"(?i)" + _SPOKEN_KEY + rb"""(?:[ \t]+[^\n:="'`]+:[ \t]|\t)""",
        rb"(?i)" + _SPOKEN_KEY + rb"""(?:[ \t]+[^\n:="'`]{1,40}:[ \t]+|\t+)""" + OPEN + rb"""([^\s"'`]+)""",
        spoken_of,
    ),
    Rule(rb"[0-9a-fA-F]{8}:[0-9a-fA-F]{8}", rb"\b[0-9a-fA-F]{32}:[0-9a-fA-F]{32}\b"),  # of NTLM
    *block(_PASSWORD_KEY),
    _below(_PASSWORD_KEY),
    *environment(_ANY_PASSWORD),
    *URLS,
    *COMMANDS,
    Rule(
        rb"\blogin[ \t]+[^\s]+[ \t]+password[ \t]",
        rb"\b(?:machine[ \t]+[^\s]+|default)[ \t]+login[ \t]+[^\s]+[ \t]+(?:account[ \t]+[^\s]+[ \t]+)?password[ \t]+"
        rb"([^\s]+)",
        flag,
    ),
    Rule(
        rb"\bmachine[ \t]+[^\s]+(?:[ \t]+login[ \t]+[^\s]+)?[ \t]*\r?\n",
        rb"\bmachine[ \t]+[^\s]+(?:[ \t]+login[ \t]+[^\s]+)?[ \t]*\r?\n\s*(?:login\s+[^\s]+\s+)?"
        rb"(?:account\s+[^\s]+\s+)?password\s+([^\s]+)",
        flag,
        lines=True,
    ),
    Rule(
        rb"(?m)^[A-Za-z0-9.*_-]+:(?:\*|[0-9]{4,5}):[^\s:]+:[^\s:]+:",  # .pgpass
        rb"(?m)^(?:[A-Za-z0-9_-]*[.g-zG-Z_*-][A-Za-z0-9.*_-]*):(?:\*|[0-9]{4,5}):[^\s:]+:[^\s:]+:(\S+)[ \t]*\r?$",
        password,
    ),
    Rule(
        rb"\$(?:2[abxy]|1|5|6|7|apr1|y|gy|sha1|scrypt|argon2|pbkdf2)",  # of crypt(3), as in htpasswd and shadow
        rb"\$(?:2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{53}|g?y\$[./A-Za-z0-9]+\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}"
        rb"|(?:1|5|6|apr1)\$(?:rounds=[0-9]+\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{22,86}"
        rb"|(?:argon2(?:id|i|d)|scrypt|pbkdf2(?:-sha[0-9]+)?|sha1|7)\$[A-Za-z0-9$./+=,-]{30,})",
    ),
    Rule(
        rb"\b(?:pbkdf2|bcrypt|scrypt|argon2)[a-z0-9_]*\$",
        rb"\b(?:pbkdf2|bcrypt|scrypt|argon2)[a-z0-9_]*\$[A-Za-z0-9$./+=,-]{30,}",
    ),
    Rule(rb"SCRAM-SHA-[0-9]+\$", rb"SCRAM-SHA-[0-9]+\$[0-9]+:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+"),
    Rule(rb"\bmd5[0-9a-f]{8}", rb"\bmd5[0-9a-f]{32}\b"),
    Rule(rb"\*[0-9A-F]{8}", rb"\*[0-9A-F]{40}\b"),
    Rule(
        rb"(?i)\{(?:S?SHA|S?MD5|CRYPT|PBKDF2|ARGON2)",
        rb"(?i)\{(?:S?SHA[0-9-]*|S?MD5|CRYPT|PBKDF2[A-Z0-9-]*|ARGON2[A-Z]*)\}[A-Za-z0-9+/=.$,:-]{13,}",
    ),
    Rule(rb'"auth\\*"', rb'"auth\\*"[ \t]*:[ \t]*\\*"([A-Za-z0-9+/]{4,}={0,2})\\*"', docker_auth),
    Rule(rb"\b_auth[ \t]*=", rb"\b_auth[ \t]*=[ \t]*" + OPEN + rb"([A-Za-z0-9+/]{4,}={0,2})", docker_auth),
    Rule(rb"\.docker(?:cfg|configjson)", rb"\.docker(?:cfg|configjson)" + SEP + OPEN + rb"([A-Za-z0-9+/]{8,}={0,2})"),
    Rule(rb"eyJhdXRocyI6", rb"\b(?:eyJhdXRocyI6)[A-Za-z0-9+/]{8,}={0,2}"),
    Rule(
        rb"ewo(?:gICJhdXRocyI|gICAgImF1dGhzI|JImF1dGhzI)",
        rb"\bewo(?:gICJhdXRocyI|gICAgImF1dGhzI|JImF1dGhzI)[A-Za-z0-9+/]{8,}={0,2}",
    ),
    Rule(_ENCODED, rb"[A-Za-z0-9+/_-]*(?:" + _ENCODED + rb")[A-Za-z0-9+/_-]*={0,2}", encoded_pair),
)  # fmt: skip
