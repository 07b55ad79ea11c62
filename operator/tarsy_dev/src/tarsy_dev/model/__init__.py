"""Serves a scripted model over the real wire protocol.

It speaks the OpenAI streaming protocol over loopback, so that everything from the SDK to the record is exercised as
with a real provider; tests, `tarsy dev` without a key and the benchmarks share it.
"""

from tarsy_dev.model.script import Script, ScriptError, demo_script, load_script, parse_script, scenario_script
from tarsy_dev.model.server import ScriptedModel

__all__ = ["Script", "ScriptError", "ScriptedModel", "demo_script", "load_script", "parse_script", "scenario_script"]
