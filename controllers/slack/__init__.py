"""Answers questions that people ask in Slack, in the threads that notifications began."""
