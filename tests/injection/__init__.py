"""A corpus of prompt injections against the engine: places where attackers write, goals, and scripts of models."""
