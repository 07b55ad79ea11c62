"""Renders the use of quotas in a namespace, the scarcest resource first, and the limits of single objects."""

from collections.abc import Iterable, Mapping
from typing import Any

from tarsy.kubernetes_tools.quantities import format_share, parse_quantity


def render_quotas(quotas: Iterable[Mapping[str, Any]], ranges: Iterable[Mapping[str, Any]]) -> str:
    """Renders ResourceQuotas and LimitRanges."""
    rows: list[tuple[float, str]] = []
    for quota in quotas:
        name, status = (quota.get("metadata") or {}).get("name"), quota.get("status") or {}
        hard, used = status.get("hard") or (quota.get("spec") or {}).get("hard") or {}, status.get("used") or {}
        for resource, most in hard.items():
            total, now = parse_quantity(most), parse_quantity(used.get(resource, "0")) or 0.0
            share = now / total if total else (1.0 if total == 0 else 0.0)
            full = " FULL: new objects that need it are refused" if share >= 1 else ""
            text = (
                f"{resource} used={used.get(resource, '0')} hard={most} ({format_share(now, total)}) quota={name}{full}"
            )
            rows.append((share, text))
    lines = [text for _, text in sorted(rows, key=lambda row: (-row[0], row[1]))] or [
        "no ResourceQuota: no limit in sum"
    ]
    for item in ranges:
        name = (item.get("metadata") or {}).get("name")
        for limit in (item.get("spec") or {}).get("limits") or ():
            said = " ".join(
                f"{word}={{{','.join(f'{k}:{v}' for k, v in sorted((limit.get(word) or {}).items()))}}}"
                for word in ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
                if limit.get(word)
            )
            lines.append(f"limit range {name} for each {limit.get('type')}: {said}")
    return "\n".join(lines)
