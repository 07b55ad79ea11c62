"""Who is asking (`identity`, `tokens`) and whether they may (`rbac`; `roles` has those that every cluster has)."""
