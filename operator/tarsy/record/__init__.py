"""Defines the types of the record, the five layers of data that an investigation leaves.

The layers are: investigation, stage, agent execution; timeline events, which people read; messages, which the model
saw; model calls; tool calls (the trace). Pure data without I/O. The engine produces these types, the store persists
them, the projector reads them.
"""
