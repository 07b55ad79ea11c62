"""Sends notifications about runs to Slack and webhooks."""
