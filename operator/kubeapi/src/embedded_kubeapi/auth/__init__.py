"""Authenticates callers (`identity`, `tokens`) and authorizes them (`rbac`, `roles`, `escalation`)."""
