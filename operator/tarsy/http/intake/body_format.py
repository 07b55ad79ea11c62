"""Names the formats of bodies that the intake takes; each has a path of its own, `/intake/v1/FORMAT`."""

from typing import Literal, get_args

BodyFormat = Literal["alertmanager", "grafana", "pagerduty", "datadog", "argocd", "flux", "json", "text"]
BODY_FORMATS: tuple[BodyFormat, ...] = get_args(BodyFormat)
