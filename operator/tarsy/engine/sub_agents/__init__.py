"""Dispatches agents that help an agent while it investigates, and hands it their conclusions."""
