"""Declares rules for tokens with a prefix of their vendor."""

from tarsy.masking.drawn import bootstrap, mixed, vendor
from tarsy.masking.rules.parts import Rule

# What follows these is drawn: at least 16 characters, with digits. The dot at the end of some is part of them.
_PREFIXES = (
    rb"ya29\.", rb"GOCSPX-", rb"AQ\.A",
    rb"ABSK", rb"bedrock-api-key-", rb"IQoJb3JpZ2lu", rb"F[wQ]oGZXIvYXdz", rb"LTAI", rb"AKID", rb"AQVN", rb"y0_",
    rb"hv[sbr]\.", rb"npm_", rb"pypi-AgE", rb"rubygems_", rb"oy2", rb"cio[A-Z]", rb"CLOJARS_",
    rb"hf_", rb"api_org_", rb"gsk_", rb"xai-", rb"r8_", rb"pplx-", rb"nvapi-", rb"tgp_v1_", rb"tvly-", rb"jina_",
    rb"pcsk_", rb"lsv2_(?:pt|sk)_", rb"apify_api_", rb"KGAT_", rb"ph[cx]_", rb"sgp_", rb"sk-lf-",
    rb"dckr_[op]at_", rb"do[opr]_v1_", rb"dapi", rb"fo1_", rb"fm[12][ar]?_", rb"rnd_", rb"nfp_", rb"HRKU-", rb"napi_",
    rb"vc[akipr]_", rb"pscale_(?:tkn|oauth|pw)_", rb"sbp_", rb"sb_secret_", rb"scw-", rb"SCW",
    rb"GR1348941", rb"secret-token:", rb"CCIP(?:AT|RJ)_", rb"bku[ai]_", rb"sq[pua]_", rb"AKCp", rb"cmVmdGtu", rb"ATBB",
    rb"AT[AC]TT3", rb"lin_(?:api|oauth)_", rb"ntn_", rb"figd_", rb"PMAK-", rb"PMAT-", rb"snyk_[a-z]+\.",
    rb"gl(?:sa|c)_", rb"eyJrIjoi", rb"NR(?:AK|II|JS|IQ|AA|SP)-", rb"sntry[su]_", rb"dt0[a-z][0-9]{2}\.", rb"pdus\+_0",
    rb"tskey-(?:[a-z]+-)?", rb"ops_eyJ", rb"dp\.(?:pt|st|ct|sa|scim|audit)\.", rb"pul-", rb"CFPAT-",
    rb"shp(?:at|ca|pa|ss|tka)_", rb"sq0[a-z]{3}-", rb"whsec_", rb"duffel_(?:live|test)_", rb"shippo_(?:live|test)_",
    rb"EZ[AT]K", rb"FLWSECK[_-]", rb"tfp_", rb"rdme_", rb"pnu_", rb"aio_", rb"fio-u-",
    rb"EAA[A-Z]", rb"sl\.[Bu]\.", rb"AAAAAAAAAAAAAAAAAAAAA", rb"SG\.", rb"xwfp-", rb"xoxe\.xox[bp]-", rb"key-",
)  # fmt: skip
_ANY = rb"(?:" + b"|".join(_PREFIXES) + rb")"

VENDORS = (
    Rule(
        rb"(?:\A|[^A-Za-z0-9])" + _ANY + rb"[A-Za-z0-9_.+/~=-]{4}",
        rb"(?:\A|[^A-Za-z0-9])(" + _ANY + rb"[A-Za-z0-9_.+/~=-]{16,})",
        vendor,
    ),
    Rule(
        rb"(?:\A|[^A-Za-z0-9/:.])(?:1//0|4/0A)",
        rb"(?:\A|[^A-Za-z0-9/:.])((?:1//0|4/0A)[A-Za-z0-9_-]{24,})",
    ),
    Rule(rb":APA91b", rb"[A-Za-z0-9_-]{11}:APA91b[A-Za-z0-9_-]{100,}"),
    Rule(rb"\.atlasv1\.", rb"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}"),
    Rule(rb"[0-9]Q~", rb"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,36}"),
    Rule(rb"[0-9]:AA[A-Za-z0-9_-]", rb"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,35}"),
    Rule(
        rb"\b[MNO][DTjz][AEIMQUYcgk][wxyz0-5]",  # digits in base64
        rb"\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
        mixed,
    ),
    Rule(
        rb"(?:\A|[^A-Za-z0-9._/-])s\.[A-Za-z0-9]{4}",
        rb"(?:\A|[^A-Za-z0-9._/-])(s\.[A-Za-z0-9]{24})(?:[^A-Za-z0-9.]|\z)",
        mixed,
    ),
    Rule(rb"\bSK[0-9a-f]{4}", rb"\bSK[0-9a-f]{32}\b"),
    Rule(rb"[0-9a-f]-us[0-9]", rb"\b[0-9a-f]{32}-us[0-9]{1,2}\b"),
    Rule(rb"\bpat-[a-z]{2}[0-9]-", rb"\bpat-[a-z]{2}[0-9]-[0-9a-f-]{36}"),
    Rule(rb"\bpat[A-Za-z0-9]+\.[0-9a-f]{4}", rb"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    Rule(
        rb"(?:discord(?:app)?\.com/api/webhooks|office\.com/webhook|hooks\.zapier\.com|/bot/v2/hook)",
        rb"(?:discord(?:app)?\.com/api/webhooks/[0-9]+/|office\.com/webhook(?:b2)?/|hooks\.zapier\.com/hooks/catch/"
        rb"""|/bot/v2/hook/)([^\s"'<>?\\]{8,})""",
    ),
    # Kubernetes and what is built on it.
    Rule(
        rb"[a-z0-9]\.[a-z0-9]{16}",
        rb"(?:\A|[^A-Za-z0-9._/-])([a-z0-9]{6}\.[a-z0-9]{16})(?:[^A-Za-z0-9._-]|\.?(?:\s|\z))",
        bootstrap,
    ),
    Rule(rb"token-[a-z0-9]{5}:", rb"token-[a-z0-9]{5}:[a-z0-9]{50,}"),
    Rule(rb":[bcdfghjklmnpqrstvwxz2456789]{12}", rb":([bcdfghjklmnpqrstvwxz2456789]{54})\b", vendor),
)
