-- oldest reader: 4
-- What a tool does and why a call of it was refused, and the lists of tools that a run first saw.
-- Code that does not know them leaves the defaults: a call of which nothing is known may have changed something.

ALTER TABLE mcp_interaction
    ADD COLUMN access text NOT NULL DEFAULT 'unknown',
    ADD COLUMN refused text;
COMMENT ON COLUMN mcp_interaction.access IS 'read-only, changes, destructive or unknown: as the plan had it';
COMMENT ON COLUMN mcp_interaction.refused IS 'why the tool was not called, as a reason; NULL: it was not refused';

CREATE TABLE tool_pin (
    investigation uuid NOT NULL REFERENCES investigation ON DELETE CASCADE,
    server text NOT NULL,
    tools jsonb NOT NULL,
    PRIMARY KEY (investigation, server)
);
COMMENT ON TABLE tool_pin IS 'a digest of each tool of a server, by name, as the run first saw it: never rewritten';
