"""Samples of characters that nobody sees, one of each range that is left out of prompts."""

INVISIBLE = [
    *"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2060\u2064",
    *"\u2066\u2069\u206f\u3164\ufe00\ufe0f\ufeff\uffa0\ufff9\ufffb\U000e0001\U000e0020\U000e007f\U000e0100\U000e01ef",
]
