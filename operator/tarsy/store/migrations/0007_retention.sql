-- oldest reader: 4
-- What is deleted when its time is over, what lists of a namespace read, and which schema a worker knows.

CREATE INDEX investigation_finished ON investigation (finished_at) WHERE finished_at IS NOT NULL;

CREATE INDEX investigation_namespace ON investigation (namespace, accepted_at DESC);

-- A set of tool definitions goes with the last call that was made with it.
CREATE INDEX llm_interaction_tool_set ON llm_interaction (tool_set) WHERE tool_set IS NOT NULL;

ALTER TABLE worker ADD COLUMN schema_version integer NOT NULL DEFAULT 4;
COMMENT ON COLUMN worker.schema_version IS 'the newest migration its code knows; older code than this column knows 4';
