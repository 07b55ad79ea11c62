"""TARSy operator: alerts investigated by chains of LLM agents, as Kubernetes custom resources."""
