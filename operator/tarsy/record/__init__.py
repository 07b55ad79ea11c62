"""The types of the five layers: what an investigation leaves behind.

Investigation, stage, agent execution, then timeline event (what people read), message (what the model saw) and
LLM and MCP interaction (the trace). Pure data: no I/O, no behaviour beyond what keeps the data consistent. The
store persists these types, the engine produces them, the projector reads them.
"""
