-- oldest reader: 4
-- plans: unchanged
-- Replays of recorded runs. Their plans have a field that older code refuses, so an older worker never runs one against
-- real tools: it leaves a replay to newer workers, and if there are none for 10 minutes, ends it as unreadable.
-- Executions record the tools that they were offered, because a model that writes its calls as text is sent no
-- definitions; what older code records has none.

ALTER TABLE investigation
    ADD COLUMN replay boolean NOT NULL DEFAULT false,
    ADD COLUMN replay_report jsonb;
COMMENT ON COLUMN investigation.replay IS 'a replay: claimed last, in no default list, with a retention of its own';

CREATE TABLE replay_input (
    investigation uuid PRIMARY KEY REFERENCES investigation ON DELETE CASCADE,
    cassette bytea NOT NULL
);
COMMENT ON TABLE replay_input IS 'the record that a replay answers from, frozen at its acceptance';

ALTER TABLE execution
    ADD COLUMN offered text REFERENCES tool_set,
    ADD COLUMN instructions jsonb;
COMMENT ON COLUMN execution.offered IS 'definitions of the tools that the agent was offered';
COMMENT ON COLUMN execution.instructions IS 'instructions of tool servers for their use, by server';

ALTER TABLE mcp_interaction
    ADD COLUMN rung text,
    ADD COLUMN cassette_line integer;
COMMENT ON COLUMN mcp_interaction.rung IS 'in a replay, how the answer was found (tarsy.record.replay)';
COMMENT ON COLUMN mcp_interaction.cassette_line IS 'in a replay, the line of the cassette that the answer comes from';
