"""Reads the scenarios of the gallery: an alert about a recorded incident, and what the model answers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tarsy_dev.incidents.corpus import FOLDER, Incident, load_incident
from tarsy_dev.model.script import Script

SCENARIOS = Path(__file__).parent / "scenarios"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One investigation of the gallery.

    Attributes:
        name: that of its file without the number, and of its page.
        title: heading of the page.
        family: what it is an example of, as a few words.
        notice: what to look at, for the reader of the page.
        alert_type: type of the alert.
        alert: its data.
        chain: name of the chain that the alert names; None: the type selects it.
        incident: from which the objects are.
        script: what the model answers.
    """

    name: str
    title: str
    family: str
    notice: str
    alert_type: str
    alert: str
    chain: str | None
    incident: Incident
    script: Script


def load_scenarios() -> list[Scenario]:
    """Returns all scenarios in the order of the gallery."""
    return [_load(path) for path in sorted(SCENARIOS.glob("*.yaml"))]


def _load(path: Path) -> Scenario:
    text = yaml.safe_load(path.read_text(encoding="utf-8"))
    return Scenario(
        name=path.stem.partition("-")[2],
        title=text["title"],
        family=text["family"],
        notice=text["notice"].strip(),
        alert_type=text["alert"]["type"],
        alert=text["alert"]["data"],
        chain=text["alert"].get("chain"),
        incident=load_incident(FOLDER / "cases" / f"{text['incident']}.yaml"),
        script=Script.model_validate(
            {"agents": {agent: [_answer(one) for one in told] for agent, told in text.get("agents", {}).items()}}
        ),
    )


def _answer(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns an answer with its finding in the form in which a model writes it, below its text."""
    if "finding" not in told:
        return told
    finding = told["finding"]
    claims = [
        {
            "text": claim["text"],
            "citations": [{"callId": f"@callId({tool})", "quote": quote} for tool, quote in claim["quotes"]],
        }
        for claim in finding["claims"]
    ]
    block = json.dumps({**finding, "claims": claims}, indent=2)
    return {"text": f"{told['text'].strip()}\n\n```finding\n{block}\n```\n"}
