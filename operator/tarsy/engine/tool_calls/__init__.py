"""Makes the tool calls of a model: policy, execution, loop guard, summaries of long results."""
