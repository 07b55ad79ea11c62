-- oldest reader: 4
-- Definitions of the tools of MCPServers with spec.pin, to be compared by those who accept them. Plans name the tools that
-- may be used (ServerPlan.pin): older workers cannot read such plans, and leave their runs to newer ones.

CREATE TABLE tool_definition (
    server_uid text NOT NULL,
    digest text NOT NULL,
    tool text NOT NULL,
    definition text NOT NULL,
    first_seen timestamptz NOT NULL DEFAULT now(),
    last_seen timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (server_uid, digest)
);
COMMENT ON TABLE tool_definition IS 'definitions that a server with spec.pin listed; decides nothing';
COMMENT ON COLUMN tool_definition.digest IS 'SHA-256 of the definition as the server lists it';
COMMENT ON COLUMN tool_definition.definition IS 'the same as JSON to read, masked and cut; untrusted text';
COMMENT ON COLUMN tool_definition.last_seen IS 'when the operator last saw it, within a day';
