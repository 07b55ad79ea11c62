"""Declares rules for passwords in URLs and connection strings."""

from tarsy.masking.rules.parts import Rule
from tarsy.masking.validators import database_password, flag, password, url_password, web_password

_MARK = b"://"
_WEB = rb"(?:https?|git|git\+https?|ssh|sftp|ftps?|wss?|svn(?:\+ssh)?|oci|docker|s3|file)"
_USER = rb"""://[^\s/:@"'`<>\\]*"""
# The next URL of a list is another one. No group, which RE2 would find slowly: the judges know where the value begins.
_VALUE = rb"""(?:[^\s"'`<>\\:]|:+[^\s"'`<>\\:/]|:+/[^\s"'`<>\\:/])+@"""
_HOST = rb"""[A-Za-z0-9\[(*$%_]"""

URLS = (
    Rule(
        rb"""://[^\s/"'@<>:]*:""",
        rb"(?i)\b" + _WEB + _USER + rb""":""" + _VALUE + _HOST,
        web_password,
        mark=_MARK,
    ),
    Rule(
        rb"""://[^\s/"'@<>:]*(?:@[^\s/"'@<>:]*)?:""",
        rb"""(?i)\b[a-z][a-z0-9+.-]*://[^\s/:"'`<>\\]*:""" + _VALUE + _HOST,
        database_password,
        mark=_MARK,
    ),
    Rule(
        rb"""://[^\s/"'@<>]*@""",
        rb"""(?i)\b[a-z][a-z0-9+.-]*://([A-Za-z0-9_\-.~%]{20,})@""",
    ),
    Rule(rb"@(?:tcp|unix)\(", rb"""[\w.-]+:([^\s/"'`<>\\]+)@(?:tcp|unix)\(""", url_password),
    Rule(
        rb"jdbc:oracle:",
        rb"""jdbc:oracle:[a-z0-9]+:[^\s/@"']+/(?:\\*"([^"\n]+)\\*"|([^\s"']+?))@(?:[/(\w])""",
        url_password,
    ),
    Rule(
        rb"\b(?:sqlplus|sqlldr|expdp|impdp|rman)[ \t]",
        rb"""\b(?:sqlplus|sqlldr|expdp|impdp|rman)[ \t](?:[^\n]*?[ \t"'])?[\w$#]+/([^\s@/"']+)(?:@|["'\s]|$)""",
        flag,
    ),
    Rule(
        rb":[^\s:@/]+@[\w.-]+:[0-9]",
        rb"""(?:^|[\s"'=,])[\w.-]+:([^\s:@/"']{6,})@[A-Za-z][\w.-]*:[0-9]{2,5}\b""",
        password,
    ),
)  # fmt: skip
