"""An agent that finds the database of checkout away: what scenarios about something around a run have in common."""

from e2e.scenarios.brain import calls, finding, says

ON_CALL = {"username": "rita", "groups": ["on-call"]}
ALERT = '{"labels": {"deployment": "checkout", "namespace": "shop"}, "text": "checkout answers 502"}'
CONFIGURATION = """
kind: Agent
name: collector
spec:
  strategy: langchain
  instructions: You look for the cause in the cluster.
  mcpServers: [{name: kubernetes}]
---
kind: Chain
name: checkout
spec:
  alertTypes: [CheckoutDown]
  llmProvider: scripted
  executiveSummary: {enabled: false}
  stages:
  - name: collect
    agents: [{name: collector}]
"""
ANSWERS = [
    says("I read the log.", calls("kubernetes.get_logs", pod="checkout-5d4f", lines=2)),
    says(
        "The database of checkout refuses connections."
        + finding(
            "checkout cannot reach its database.",
            "Medium",
            ("The connection is refused.", "kubernetes.get_logs", "5432: connection refused"),
        )
    ),
]
