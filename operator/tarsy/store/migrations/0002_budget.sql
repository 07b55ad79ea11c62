-- What a run costs, when its budget ended it, what was sent instead of compacted messages, and which tool calls were
-- answered without their server.

ALTER TABLE investigation
    ADD COLUMN cost_usd numeric,
    ADD COLUMN cost_complete boolean NOT NULL DEFAULT true,
    ADD COLUMN budget_limit text,
    ADD COLUMN budget_message text;
COMMENT ON COLUMN investigation.cost_usd IS 'sum of what is known; NULL when nothing is';
COMMENT ON COLUMN investigation.cost_complete IS 'false when a call of unknown cost is missing from the sum';

ALTER TABLE llm_interaction
    ADD COLUMN cost_usd numeric,
    ADD COLUMN estimated_tokens bigint NOT NULL DEFAULT 0,
    ADD COLUMN estimated_cost_usd numeric NOT NULL DEFAULT 0;
COMMENT ON COLUMN llm_interaction.cost_usd IS 'NULL: usage or rates are unknown';
COMMENT ON COLUMN llm_interaction.estimated_tokens IS 'what a budget counts while the usage is unknown';

ALTER TABLE mcp_interaction
    ADD COLUMN made boolean NOT NULL DEFAULT true,
    ADD COLUMN repeatable boolean NOT NULL DEFAULT false,
    ADD COLUMN repeated_of uuid;
COMMENT ON COLUMN mcp_interaction.made IS 'false: answered without the server (a repetition, or the budget was spent)';
COMMENT ON COLUMN mcp_interaction.repeated_of IS 'the call whose answer was given again';

-- Messages are never rewritten: a row here says what model call `call` and those after it were sent instead of it.
CREATE TABLE superseded (
    execution uuid NOT NULL REFERENCES execution ON DELETE CASCADE,
    seq integer NOT NULL,
    call integer NOT NULL,
    content text NOT NULL,
    PRIMARY KEY (execution, seq, call)
);
