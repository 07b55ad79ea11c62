-- oldest reader: 4
-- Integrity classes of tool results: who can write what they say. Results that older code stores have none: workloads can
-- write all of them. Plans have what MCPServers declare of them (spec.evidence): older workers leave such runs alone.

ALTER TABLE mcp_interaction ADD COLUMN integrity jsonb;
COMMENT ON COLUMN mcp_interaction.integrity IS
    'class of the result (K, A, X), spans of class K in it, whether it is a state (tarsy.record.integrity); null: class A';
