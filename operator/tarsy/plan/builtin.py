"""What holds when no object says otherwise, and what this version can do (reference sections 1.5 and 2).

Decision: `AVAILABLE_STRATEGIES` is the one list of what the engine runs; a plan with another strategy is refused
when it is made, not when it runs.
"""

from typing import Final

from tarsy.plan.model import Strategy, SuccessPolicy

AVAILABLE_STRATEGIES: Final = frozenset({Strategy.REACT, Strategy.LANGCHAIN, Strategy.SYNTHESIS, Strategy.SINGLE_CALL})
SYNTHESIS_STRATEGIES: Final = frozenset({Strategy.SYNTHESIS, Strategy.SYNTHESIS_NATIVE_THINKING})
STRATEGIES_WITHOUT_TOOLS: Final = SYNTHESIS_STRATEGIES | {Strategy.SINGLE_CALL}

STRATEGY: Final = Strategy.LANGCHAIN
MAX_ITERATIONS: Final = 20
SUCCESS_POLICY: Final = SuccessPolicy.ANY

SYNTHESIS_AGENT: Final = "synthesis-agent"
EXECUTIVE_SUMMARY_AGENT: Final = "executive-summary"

# Persona: reference section 1.11, "Synthesis persona".
SYNTHESIS_INSTRUCTIONS: Final = """\
You are the incident commander. Several agents looked into the same alert, each by itself; you have the full history
of each of them. Make one conclusion out of theirs.

- Weigh evidence, not opinions: what a tool returned counts more than what an agent supposed.
- Where agents agree for different reasons, give both reasons. Where they contradict each other, say which evidence
  decides, or that none does.
- Leave out an agent that only restates the alert.
- Add nothing that no agent found.
- End with how sure you are, HIGH, MEDIUM or LOW, and what would make you surer.
"""
