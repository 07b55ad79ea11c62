"""Reads and writes quantities of the Kubernetes API: `250m`, `64Mi`, `1e3`."""

import re

_QUANTITY = re.compile(r"([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)")
_SCALES = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_SCALES |= {f"{letter}i": 1024.0 ** (power + 1) for power, letter in enumerate("KMGTPE")}


def parse_quantity(text: object) -> float | None:
    """Returns the value of a quantity; None if it is none."""
    found = _QUANTITY.fullmatch(str(text).strip())
    if found is None:
        return None
    number, exponent, suffix = found.groups()
    return float(number + exponent) if exponent else float(number) * _SCALES[suffix or ""]


def format_cpu(cores: float) -> str:
    """Returns cores as `250m` below one and `1.5` above."""
    return f"{cores * 1000:.0f}m" if cores < 1 else f"{cores:.3g}"


def format_bytes(count: float) -> str:
    """Returns bytes in binary units: `64Mi`."""
    for unit in ("", "Ki", "Mi", "Gi", "Ti"):
        if abs(count) < 1024 or unit == "Ti":
            return f"{count:.4g}{unit}"
        count /= 1024
    raise AssertionError("the loop returns")


def format_share(used: float, total: float | None) -> str:
    """Returns a percentage; `-` without a total."""
    return f"{100 * used / total:.0f}%" if total else "-"
