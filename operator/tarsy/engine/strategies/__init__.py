"""How an agent thinks: the strategies that need more than the shared loop."""
