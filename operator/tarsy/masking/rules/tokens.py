"""Declares rules for tokens, API keys, JWTs, cloud keys, base64 words and e-mail addresses."""

from tarsy.masking.drawn import aws_secret, base64_short, base64_word, docker_auth, jwt, random_word
from tarsy.masking.rules.parts import OPEN, SEP, Rule, block, environment, named, near
from tarsy.masking.rules.vendors import VENDORS
from tarsy.masking.validators import (
    bearer,
    email,
    flag,
    header,
    last_word,
    not_a_name,
    raw_authorization,
    short_secret,
    url_password,
)

_KIND_OF_KEY = rb"(?:account|shared|access|service|master|auth|app|license|encryption|signing)"

API_KEY = (
    Rule(near(rb"api[_-]?keys?"), named(rb"api[_-]?keys?")),
    Rule(near(rb"key"), named(rb"(?:^|[^A-Za-z]|[a-z0-9]_)key"), random_word),
    Rule(near(rb"key"), named(_KIND_OF_KEY + rb"[_-]?key"), random_word),
    *block(rb"api[_-]?key"),
    *environment(rb"api[_-]?key"),
    Rule(rb"AIza", rb"(?:\A|[^A-Za-z0-9])(AIza[A-Za-z0-9_-]{30,})"),
    Rule(rb"\bsk-", rb"\bsk-[A-Za-z0-9_-]{20,}", not_a_name),
    Rule(rb"\b[rs]k_(?:live|test)_", rb"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    Rule(rb"\bSG\.", rb"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
)  # fmt: skip

_SCHEMES = (
    rb"(?:bearer|basic|token|digest|negotiate|apikey|api-key|api-token|key|ntlm|oauth|splunk|ssws|bot|geniekey|hmac|mac"
    rb"|hawk|sharedkey)"
)
_HEADER = (
    rb"(?:x-(?:[a-z0-9]+-)*(?:key|token|secret|auth|signature|password|credentials?)"
    rb"|(?:private|job|deploy|api|access|auth|session|csrf|xsrf)-token|api-key|(?:[a-z]+-)*subscription-key"
    rb"|dd-ap(?:i|plication)-key)"
)
_SHORT_KEY = rb"(?:token(?:-?secret)?|api_?key|access_?key|secret_?key|auth_?key)"
_SECRET_ENV = rb"(?-i:[A-Z0-9_]*SECRET(?:_KEY)?)"
_SESSION = rb"(?:jsessionid|phpsessid|connect\.sid|asp\.net_sessionid|laravel_session|_gitlab_session|sessionid)"
_QUERY = rb"(?:code|access_token|id_token|refresh_token|client_secret|api_?key|auth|sig|signature|hmac|secret)"
_PART = rb"[A-Za-z0-9_-]"
_BROKEN = rb"(?:(?:\r?\n|(?:\\+[nr])+)[ \t>|]*)"

TOKEN = (
    Rule(
        near(rb"authorization"),
        rb"""(?i)authorization""" + SEP + rb"""(?:\[\]string\{|\[)?""" + OPEN + _SCHEMES
        + rb"""[ \t]+[^\s"'`\\,;\]\[]+""",
        last_word,
    ),
    Rule(near(rb"authorization"), named(rb"authorization", rb"""([^\s"'`\\,;\]\[]{8,})"""), raw_authorization),
    Rule(
        rb"(?i)(?:signature|response)[ =]",
        rb"""(?i)\b(?:signature|response)[= ]["']?([0-9a-f]{32,})""",
    ),
    Rule(
        rb"(?i)set-cookie",
        rb"""(?i)set-cookie""" + SEP + rb"""(?:\[\]string\{|\[)?""" + OPEN
        + rb"""[^\s"'=;,\[\]]+=([^\s"';,\]\\]{4,})""",
        url_password,
    ),
    Rule(
        near(rb"cookie"),
        rb"""(?i)(?:^|[^A-Za-z0-9_-])cookie""" + SEP + rb"""(?:\[\]string\{|\[)?""" + OPEN
        + rb"""[^\s"'=;,\[\]]+=([^"'\r\n\]\\]{6,})""",
        url_password,
    ),
    Rule(rb"(?i)" + _SESSION, rb"(?i)" + _SESSION + rb"""[=:][ ]?["']?([A-Za-z0-9%._-]{16,})""", url_password),
    Rule(
        rb"(?i)\b" + _HEADER + rb"""\\*["']?[ \t]*[:=]""",
        rb"(?i)\b" + _HEADER + SEP + OPEN + rb"""([^\s"'`,;&\\\]\[]{6,})""",
        header,
    ),
    Rule(rb"(?i)bearer[ \t]+[A-Za-z0-9_\-.+/=~]", rb"(?i)\bbearer[ \t]+([A-Za-z0-9_\-.+/=~]{16,})", bearer),
    Rule(rb"(?i)basic[ \t]+[A-Za-z0-9+/]", rb"(?i)\bbasic[ \t]+([A-Za-z0-9+/]{8,}={0,2})", docker_auth),
    Rule(
        rb"eyJ" + _PART + rb"{10,}(?:\." + _PART + rb"*)*" + _BROKEN,
        rb"(?:\A|[^A-Za-z0-9_-])(eyJ" + _PART + rb"{10,}(?:\." + _PART + rb"*)*"
        rb"(?:" + _BROKEN + rb"[A-Za-z0-9_.-]{16,})+(?:" + _BROKEN + rb"[A-Za-z0-9_.-]{1,15})?)(?:[\s\"'\\,;]|\z)",
        jwt,
        lines=True,
    ),
    Rule(rb"eyJ[A-Za-z0-9_-]+\.", rb"\beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)+"),
    Rule(near(rb"(?:token|bearer|jwt)"), named(rb"(?:token|bearer|jwt)")),
    Rule(near(_SHORT_KEY), named(_SHORT_KEY, rb"""([A-Za-z0-9_\-.+/=~]{8,})"""), short_secret),
    Rule(near(_SECRET_ENV), rb"(?i)" + _SECRET_ENV + SEP + OPEN + rb"""([^\s"'`\\,;]{6,})""", short_secret),
    Rule(
        rb"""(?i)secret(?:=|\\*["'][ \t]*:)""",
        rb"""(?i)(?:^|[^A-Za-z-])secret(?:=|\\*["'][ \t]*:[ \t]*)""" + OPEN + rb"""([A-Za-z0-9_\-.+/=~]{8,})""",
        short_secret,
    ),
    Rule(
        rb"(?i)<[a-z:]*(?:token|apikey|secret)>",
        rb"(?i)<(?:[a-z]+:)?[a-z]*(?:token|apikey|secret)>([^<\s]{8,})</",
        short_secret,
    ),
    Rule(rb"(?i)--[a-z-]*token", rb"""(?i)--[a-z-]*token(?:=|[ \t]+)["']?([^\s"'`\\-][^\s"'`\\]*)""", flag),
    *block(rb"(?:token|secret(?:_?key)?)"),
    *environment(rb"(?:token|jwt)"),
    Rule(rb"\bgl[a-z]{2,7}-", rb"\bgl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_.-]{16,}"),
    Rule(rb"(?:[?&; ]|amp;)sig=", rb"(?:[?&; ]|amp;)sig=([A-Za-z0-9%+/_-]{40,}=?)"),
    Rule(rb"(?i)[?&;]" + _QUERY + rb"=", rb"""(?i)[?&;]""" + _QUERY + rb"""=([^&\s"'<>;\\]{20,})""", random_word),
    Rule(rb"sha256~", rb"\bsha256~[A-Za-z0-9_-]{40,}"),
    Rule(rb"_password=", rb"_password=([A-Za-z0-9+/]{6,}={0,2})", flag),
    *VENDORS,
)  # fmt: skip

AWS_ACCESS_KEY = (
    Rule(rb"A[KS]IA", rb"\bA[KS]IA[A-Z0-9]{16}\b"),
    Rule(rb"(?i)aws_access_key_id", named(rb"aws_access_key_id", rb"([A-Z0-9]{16,})")),
)

AWS_SECRET_KEY = (
    Rule(
        near(rb"secret_?(?:access_?)?key(?:_id)?"),
        named(rb"(?:aws_?)?secret_?(?:access_?)?key(?:_id)?", rb"([A-Za-z0-9/+]{40})"),
    ),
    Rule(
        rb"(?:\A|[^A-Za-z0-9/+])[A-Za-z0-9/+]{40}(?:[^A-Za-z0-9/+=]|\z)",
        rb"(?:\A|[^A-Za-z0-9/+])([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|\z)",
        aws_secret,
        counts=True,
    ),
)

GITHUB_TOKEN = (
    Rule(rb"gh[opsru]_[A-Za-z0-9_]", rb"gh[opsru]_[A-Za-z0-9_]{36,}"),
    Rule(rb"github_pat_", rb"github_pat_[A-Za-z0-9_]{22,}"),
    Rule(near(rb"(?:github|gh)[_-]?(?:pat|token)"), named(rb"(?:github|gh)[_-]?(?:pat|token)")),
    *environment(rb"(?:github|gh)_?(?:pat|token)"),
)

SLACK_TOKEN = (
    Rule(rb"xox[a-z]", rb"xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}"),
    Rule(rb"xapp-", rb"\bxapp-\d-[A-Za-z0-9-]{10,}"),
    Rule(rb"hooks\.slack\.com", rb"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{8,})"),
)

EMAIL = (
    Rule(rb"[A-Za-z0-9._%+-]@[A-Za-z0-9.-]+\.[A-Za-z]{2}", rb"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}", email),
)

BASE64_SECRET = (
    Rule(
        rb"[A-Za-z0-9+/]{20}",
        rb"(?:(?i:sha)[0-9]{1,3}[:-])?[A-Za-z0-9+/]{20,}={0,2}",
        base64_word,
        counts=True,
    ),
)

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
