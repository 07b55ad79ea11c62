"""Declares rules for secrets in arguments of commands: by long flag, or by short flag of a known command."""

from tarsy.masking.rules.parts import ARGUMENT, ATTACHED, OPEN, Rule
from tarsy.masking.validators import Validator, config_word, flag, literal, short_secret, url_password

_LONG_FLAG = (
    rb"--?(?:[A-Za-z0-9]+[.-])*(?:pass(?:word|wd|phrase)?|pwd|requirepass|masterauth|(?:src|dest)?(?:store|key)pass"
    rb"|client-secret|api-?key|access-?key|secret-?key|account-key|shared-key|encryption-key|sas-token|auth-token)"
)
_REST = rb"[^\n|]*?[ \t]"
_USER = rb"""["']?[^\s:"']+:"""


def _command(names: bytes, flags: bytes, value: bytes = rb"(?:[ \t]+|=)?" + ARGUMENT, judge: Validator = flag) -> Rule:
    """Builds the rule of a flag of some commands, anywhere among their arguments."""
    trigger = rb"\b(?:" + names + rb")[ \t]"
    return Rule(trigger, trigger + rb"(?:" + _REST + rb")?" + flags + value, judge)


_LOGIN = rb"(?:docker|podman|nerdctl|buildah|skopeo|helm|oras|crane|regctl|oc|az|cf)[ \t][^\n|]*\blogin"
_MYSQL = rb"(?:mysql|mariadb|mysqld)[A-Za-z_-]*|mycli|mydumper|myloader|xtrabackup|mariabackup"
_MONGO = rb"mongo(?:sh|dump|restore|import|export|stat|top|files)?"
_LDAP = rb"ldap(?:search|add|modify|delete|modrdn|compare|whoami|passwd|exop)"
_SMB = rb"smbclient|rpcclient|smbmap|smbget|smbcacls|winexe|wmic|mount\.cifs|net[ \t]+(?:rpc|ads)|pth-[a-z]+"
_BLANK = rb"[ \t]+"
_ECHO = rb"""\b(?:echo|printf)[ \t]+(?:-[a-z]+[ \t]+|["']%s(?:\\n)?["'][ \t]+)?"""

COMMANDS = (
    Rule(
        rb"(?i)[\s\"',\[-]" + _LONG_FLAG + rb"(?:[ \t=]|\\*[\"'])",
        rb"(?i)(?:^|[\s\"',\[])" + _LONG_FLAG + rb"""(?:=|[ \t]+|\\*["'],[ \t]*(?:\\*["'])?)""" + ARGUMENT,
        flag,
    ),
    Rule(
        rb"(?i)" + _LONG_FLAG + rb"""\\*["']?,?[ \t]*(?:\r?\n|\\n)""",
        rb"(?i)(?:^|[\s\"',\[])" + _LONG_FLAG + rb"""\\*["']?,?[ \t]*(?:\r?\n|\\n)[ \t]*(?:-[ ]+|\\*")""" + ARGUMENT,
        flag,
        lines=True,
    ),
    Rule(rb"(?i)--[a-z-]*secret[ \t=]", rb"(?i)--(?:[a-z]+-)*secret(?:=|[ \t]+)" + ARGUMENT, short_secret),
    Rule(rb"--from-literal[ =]", rb"""--from-literal[ =]["']?([\w.-]+=[^\s"']+)""", literal),
    Rule(rb"creds[ =]", rb"--(?:src-|dest-)?creds[ =]" + _USER + rb"""([^\s"']+)""", url_password),
    Rule(rb"/p(?:ass)?(?:word)?:", rb"""(?i)[ \t]/p(?:ass(?:word)?)?:["']?([^\s"']+)""", flag),
    # Passwords that stand right behind a short flag, and after a blank.
    _command(_MYSQL, rb"-p", ATTACHED),
    _command(rb"7z[ar]?|rar|unrar", rb"-p", ATTACHED),
    _command(rb"sshpass", rb"-p"),
    _command(_MONGO, rb"-p"),
    _command(rb"cqlsh|cypher-shell|beeline|rabbitmqadmin|hive|psexec|winrs", rb"-p", _BLANK + ARGUMENT),
    Rule(rb"\blogin\b[^\n|]*[ \t]-p", rb"\b" + _LOGIN + rb"\b[^\n|]*?[ \t]-p(?:[ \t]+|=)?" + ARGUMENT, flag),
    Rule(rb"\baz[ \t]", rb"\baz[ \t][^\n|]*?[ \t]-p[ \t]+" + ARGUMENT, flag),
    _command(rb"(?:redis|valkey|keydb)-cli", rb"-a", _BLANK + ARGUMENT),
    _command(_LDAP, rb"-w"),
    Rule(rb"\bldappasswd[ \t]", rb"\bldappasswd[ \t](?:[^\n|]*?[ \t])?-s[ \t]*" + ARGUMENT, flag),
    Rule(rb"\bldappasswd[ \t]", rb"\bldappasswd[ \t](?:[^\n|]*?[ \t])?-a[ \t]*" + ARGUMENT, flag),
    _command(_SMB, rb"(?:-U|--user)[ \t=]*", rb"""["']?[^\s"'%]+%([^\s"']+)"""),
    _command(rb"sqlcmd|osql|bcp|tsql|isql|zip|unzip|zipcloak|ipmitool|mosquitto_(?:pub|sub)|snmp-check", rb"-P"),
    _command(rb"ssh-keygen", rb"-N"),
    _command(rb"ssh-keygen", rb"-P"),
    _command(rb"snmp[a-z]+", rb"-A", _BLANK + ARGUMENT),
    _command(rb"snmp[a-z]+", rb"-X", _BLANK + ARGUMENT),
    _command(rb"plink|pscp|psftp|putty", rb"-pw", _BLANK + ARGUMENT),
    _command(rb"openssl", rb"-k", _BLANK + ARGUMENT),
    Rule(
        rb"-pass(?:in|out)?[ \t]",
        rb"""-pass(?:in|out)?[ \t]+(?:"pass:([^"\n]+)"|'pass:([^'\n]+)'|pass:([^\s"']+))""",
        flag,
    ),
    # user:password
    _command(
        rb"curl|https?|ab|siege|hey",
        rb"(?:-u|-U|-a|-A|--user|--proxy-user|--auth)",
        rb"[ =]?" + _USER + rb"""([^\s"']+)""",
        url_password,
    ),
    _command(
        rb"etcdctl|ctr|crictl|lftp",
        rb"(?:-u|--user|--creds|--auth)",
        rb"""[ =]["']?[^\s:,"']+[:,]([^\s"']+)""",
        url_password,
    ),
    _command(rb"curl", rb"(?:-b|--cookie)", rb"""[ =]?["']?[^\s"'=;]+=([^"'\n]+)""", url_password),
    # Commands that take a password by its place.
    Rule(
        rb"(?i)\bnet[ \t]+use[ \t]",
        rb"(?i)\bnet[ \t]+use[ \t]+(?:[a-z*]:?[ \t]+)?\\\\*[^\s]+[ \t]+(?:/user:[^\s]+[ \t]+)?([^\s/*][^\s]*)",
        flag,
    ),
    Rule(rb"(?i)\bnet[ \t]+user[ \t]", rb"(?i)\bnet[ \t]+user[ \t]+[^\s/]+[ \t]+([^\s/*][^\s]*)", config_word),
    Rule(
        rb"\brabbitmqctl[ \t]",
        rb"\brabbitmqctl[ \t](?:[^\n]*?[ \t])?(?:add_user|change_password|authenticate_user)[ \t]+[^\s]+[ \t]+"
        + ARGUMENT,
        flag,
    ),
    Rule(
        rb"\bhtpasswd[ \t]",
        rb"\bhtpasswd[ \t]+-[A-Za-z0-9]*b[^\n|;&>]*[ \t]" + ARGUMENT + rb"""["']?[ \t]*(?:[|;&>\r\n]|\z)""",
        flag,
    ),
    Rule(rb"\bvault[ \t]+login[ \t]", rb"\bvault[ \t]+login[ \t]+" + OPEN + rb"([A-Za-z0-9._-]{8,})", short_secret),
    Rule(
        rb"\bvault[ \t]+(?:kv|write)[ \t]",
        rb"\bvault[ \t]+(?:kv[ \t]+put|write)[ \t]+[^\s]+[ \t]+[\w.-]+=" + ARGUMENT,
        flag,
    ),
    Rule(
        rb"\baws[ \t]+configure[ \t]+set[ \t]",
        rb"\baws[ \t]+configure[ \t]+set[ \t]+[^\s]*(?:secret|token)[^\s]*[ \t]+" + ARGUMENT,
        flag,
    ),
    # Passwords that are piped.
    Rule(
        rb"\b(?:echo|printf)[ \t]",
        _ECHO + rb"""["']?[^\s:"'|]+:([^\s"'|]+)["']?[ \t]*\|[ \t]*(?:sudo[ \t]+)?chpasswd""",
        url_password,
    ),
    Rule(
        rb"\b(?:echo|printf)[ \t]",
        _ECHO + ARGUMENT + rb"""["']?[ \t]*\|[ \t]*(?:sudo[ \t]+(?:[^\n|]*[ \t])?(?:-S|--stdin)|su\b|kinit\b"""
        rb"""|cryptsetup\b|gpg2?\b[^\n|]*passphrase-fd|[^\n|]*--?(?:password-stdin|with-token|stdin))""",
        flag,
    ),
)  # fmt: skip
