-- oldest reader: 4
-- plans: unchanged
-- Executions of sub-agents, which an agent dispatches. Plans with sub-agents have a field that older code refuses, so an
-- older worker leaves such runs to newer ones, and if there are none for 10 minutes, ends them as unreadable. Older code
-- shows the executions of sub-agents as further agents of their stage.

ALTER TABLE execution
    ADD COLUMN parent uuid,
    ADD COLUMN dispatched_by uuid,
    ADD COLUMN task text,
    ADD COLUMN hypothesis text,
    ADD COLUMN verdict jsonb;
COMMENT ON COLUMN execution.parent IS 'execution of the agent that dispatched this sub-agent; null: it is an agent of the plan';
COMMENT ON COLUMN execution.dispatched_by IS 'idempotency key of the tool call that dispatched it';
COMMENT ON COLUMN execution.task IS 'what it was asked to do';
COMMENT ON COLUMN execution.hypothesis IS 'what it was asked to support or refute';
COMMENT ON COLUMN execution.verdict IS
    'what the record says of the hypothesis, with its checked claims (tarsy.record.dispatch.HypothesisVerdict)';
