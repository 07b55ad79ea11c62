-- Every step of a run is one statement, hence one transaction and one round trip. $1 is the investigation, $2 the
-- attempt, $3 to $11 the timeline events (arrays of one length); a step's own values follow from $12.
--
-- Locks are always taken in this order, which is why parallel agents of a run cannot block each other for good: the
-- lease FOR SHARE, rows of the writer's own execution, the investigation, everything else. What is written after the
-- investigation is selected FROM run; nothing may read a data-modifying CTE in an expression of an UPDATE, only join it.

-- name: _fence
fence AS MATERIALIZED (
    SELECT investigation FROM lease WHERE investigation = $1 AND attempt = $2 FOR SHARE
)

-- name: _run
run AS (
    UPDATE investigation i SET revision = i.revision + 1, event_seq = i.event_seq + cardinality($3::uuid[])
    FROM fence WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq
)

-- A closed event is never opened again; an event keeps its place whatever replaces it.
-- name: _events
events AS (
    INSERT INTO timeline_event AS t
        (id, investigation, seq, revision, type, status, content, metadata, stage, execution, model_call, tool_call)
    SELECT e.id, run.id, run.event_seq - cardinality($3::uuid[]) + e.place, run.revision,
        e.type, e.status, e.content, e.metadata, e.stage, e.execution, e.model_call, e.tool_call
    FROM run, unnest(
        $3::uuid[], $4::text[], $5::text[], $6::text[], $7::jsonb[], $8::uuid[], $9::uuid[], $10::uuid[], $11::uuid[]
    ) WITH ORDINALITY
        AS e (id, type, status, content, metadata, stage, execution, model_call, tool_call, place)
    ON CONFLICT (id) DO UPDATE SET
        revision = excluded.revision, type = excluded.type, status = excluded.status, content = excluded.content,
        metadata = excluded.metadata, stage = excluded.stage, execution = excluded.execution,
        model_call = excluded.model_call, tool_call = excluded.tool_call, updated_at = now()
    WHERE t.status = 'streaming' OR excluded.status <> 'streaming'
)

-- name: write_events
WITH {_fence}, {_run}, {_events}
SELECT true AS found FROM run

-- name: degrade_evidence
WITH {_fence}, run AS (
    UPDATE investigation i SET
        revision = i.revision + 1, event_seq = i.event_seq + cardinality($3::uuid[]),
        evidence_missing = i.evidence_missing || $12::jsonb
    FROM fence WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq
), {_events}
SELECT true AS found FROM run

-- name: begin_stage
WITH {_fence}, {_run}, {_events}, begun AS (
    INSERT INTO stage AS s (id, investigation, index, name, kind, expected_agents, parallel, success_policy, revision)
    SELECT $12, run.id, $13, $14, $15, $16, $17, $18, run.revision FROM run
    ON CONFLICT (id) DO UPDATE SET revision = excluded.revision
    RETURNING s.state, s.failure_reason, s.failure_message
)
SELECT true AS found, begun.* FROM begun

-- A stage that is closed stays as it was closed.
-- name: finish_stage
WITH {_fence}, {_run}, {_events}, closed AS (
    UPDATE stage s SET
        state = $13, failure_reason = $14, failure_message = $15, finished_at = now(), revision = run.revision
    FROM run WHERE s.id = $12 AND s.state = 'running'
)
SELECT EXISTS (SELECT FROM stage WHERE id = $12) AS found FROM run

-- Model calls that an earlier attempt left open are interrupted, and so are the events it left streaming. Tool calls
-- stay `started`: whether they are made again is the engine's to decide.
-- name: begin_execution
WITH {_fence}, interrupted AS (
    UPDATE llm_interaction c SET state = 'interrupted', finished_at = now()
    FROM fence WHERE c.execution = $12 AND c.state = 'started'
    RETURNING c.id
), tally AS MATERIALIZED (
    SELECT count(*) AS calls FROM interrupted
), run AS (
    UPDATE investigation i SET
        revision = i.revision + 1, event_seq = i.event_seq + cardinality($3::uuid[]),
        interrupted_model_calls = i.interrupted_model_calls + tally.calls
    FROM fence, tally WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq
), {_events}, left_open AS (
    UPDATE timeline_event t SET status = 'interrupted', revision = run.revision, updated_at = now()
    FROM run WHERE t.investigation = run.id AND t.execution = $12 AND t.status = 'streaming'
), parent AS (
    UPDATE stage s SET revision = run.revision FROM run WHERE s.id = $13
), begun AS (
    INSERT INTO execution AS e (id, stage, index, agent, display_name, strategy, provider, model)
    SELECT $12, $13, $14, $15, $16, $17, $18, $19 FROM run
    ON CONFLICT (id) DO UPDATE SET index = e.index
    RETURNING e.state, e.loop, e.result, e.failure_reason, e.failure_message
)
SELECT true AS found, begun.*, EXISTS (SELECT FROM execution WHERE id = $12) AS existed,
    (SELECT count(*) FROM llm_interaction WHERE execution = $12) AS model_calls
FROM begun

-- The conversation so far, in order.
-- name: messages
SELECT role, content, tool_calls, tool_call_id, tool_name, provider_state FROM message WHERE execution = $1 ORDER BY seq

-- Tool calls without an answer: those whose latest try was begun and never closed.
-- name: unanswered
SELECT * FROM (
    SELECT DISTINCT ON (message_seq, index) message_seq, index, attempt, state
    FROM mcp_interaction WHERE execution = $1 ORDER BY message_seq, index, attempt DESC
) latest WHERE state = 'started'

-- What the execution left open (an iteration ran out of time in the middle of a call) is closed with it.
-- name: finish_execution
WITH {_fence}, interrupted AS (
    UPDATE llm_interaction c SET state = 'interrupted', finished_at = now()
    FROM fence WHERE c.execution = $12 AND c.state = 'started'
    RETURNING c.id
), tally AS MATERIALIZED (
    SELECT count(*) AS calls FROM interrupted
), given_up AS (
    UPDATE mcp_interaction c SET state = 'interrupted', finished_at = now()
    FROM fence WHERE c.execution = $12 AND c.state = 'started'
), run AS (
    UPDATE investigation i SET
        revision = i.revision + 1, event_seq = i.event_seq + cardinality($3::uuid[]),
        interrupted_model_calls = i.interrupted_model_calls + tally.calls
    FROM fence, tally WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq
), {_events}, left_open AS (
    UPDATE timeline_event t SET
        status = CASE WHEN $13 = 'completed' THEN 'interrupted' ELSE $13 END, revision = run.revision, updated_at = now()
    FROM run
    WHERE t.investigation = run.id AND t.execution = $12 AND t.status = 'streaming' AND t.id <> ALL($3::uuid[])
), closed AS (
    UPDATE execution e SET
        state = $13, result = $14, failure_reason = $15, failure_message = $16, finished_at = now()
    FROM run WHERE e.id = $12 AND e.state = 'running'
    RETURNING e.stage
), parent AS (
    UPDATE stage s SET revision = run.revision FROM run, closed WHERE s.id = closed.stage
)
SELECT EXISTS (SELECT FROM execution WHERE id = $12) AS found FROM run

-- Boundary (a). $22 are the definitions of tool set $21, or null when this writer has stored them before.
-- name: model_call_started
WITH {_fence}, {_run}, {_events}, tools AS (
    INSERT INTO tool_set (hash, definitions) SELECT $21, $22::jsonb FROM run WHERE $22::jsonb IS NOT NULL
    ON CONFLICT DO NOTHING
), said AS (
    INSERT INTO message (execution, seq, role, content, tool_calls, tool_call_id, tool_name, provider_state)
    SELECT $13, $23 + m.place - 1, m.role, m.content, m.tool_calls, m.tool_call_id, m.tool_name, m.provider_state
    FROM run, unnest($24::text[], $25::text[], $26::jsonb[], $27::text[], $28::text[], $29::jsonb[]) WITH ORDINALITY
        AS m (role, content, tool_calls, tool_call_id, tool_name, provider_state, place)
    ON CONFLICT DO NOTHING
), looped AS (
    UPDATE execution e SET loop = $20::jsonb FROM run WHERE e.id = $13
)
INSERT INTO llm_interaction AS c (id, execution, number, kind, provider, model, strategy, message_count, tool_set)
SELECT $12, $13, $14, $15, $16, $17, $18, $19, $21 FROM run
ON CONFLICT (id) DO UPDATE SET number = c.number
RETURNING true AS found

-- Boundary (b). Only a call that is open is counted, so a step written twice counts once. The message is the answer, or,
-- when the answer was lost, what the model is told about that.
-- name: model_call_finished
WITH {_fence}, closed AS (
    UPDATE llm_interaction c SET
        state = $14, finished_at = now(), duration_ms = $15, thinking = $17, response_metadata = $18,
        message_seq = CASE WHEN $14 = 'completed' THEN $16::integer END,
        input_tokens = $19, output_tokens = $20, thinking_tokens = $21, cached_tokens = $22,
        failure_reason = $23, failure_message = $24
    FROM fence WHERE c.id = $12 AND c.state = 'started'
    RETURNING c.id
), tally AS MATERIALIZED (
    SELECT count(*) AS calls FROM closed
), run AS (
    UPDATE investigation i SET
        revision = i.revision + 1, event_seq = i.event_seq + cardinality($3::uuid[]),
        model_calls = i.model_calls + tally.calls,
        input_tokens = i.input_tokens + tally.calls * coalesce($19, 0),
        output_tokens = i.output_tokens + tally.calls * coalesce($20, 0),
        thinking_tokens = i.thinking_tokens + tally.calls * coalesce($21, 0),
        cached_tokens = i.cached_tokens + tally.calls * coalesce($22, 0),
        usage_complete = i.usage_complete AND $25
    FROM fence, tally WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq
), {_events}, said AS (
    INSERT INTO message (execution, seq, role, content, tool_calls, provider_state)
    SELECT $13, $16, $30, $26, $27::jsonb, $28::jsonb FROM run WHERE $16::integer IS NOT NULL
    ON CONFLICT DO NOTHING
), looped AS (
    UPDATE execution e SET loop = $29::jsonb FROM run WHERE e.id = $13
)
SELECT EXISTS (SELECT FROM llm_interaction WHERE id = $12) AS found FROM run

-- Boundary (c). Earlier tries of the same call, left open by dead attempts, are interrupted.
-- name: tool_call_started
WITH {_fence}, {_run}, {_events}, given_up AS (
    UPDATE mcp_interaction c SET state = 'interrupted', finished_at = now()
    FROM run
    WHERE c.execution = $13 AND c.message_seq = $14 AND c.index = $15 AND c.attempt < $16 AND c.state = 'started'
)
INSERT INTO mcp_interaction AS c
    (id, execution, message_seq, index, attempt, call_id, server, tool, arguments, idempotency_key)
SELECT $12, $13, $14, $15, $16, $17, $18, $19, $20, $21 FROM run
ON CONFLICT (id) DO UPDATE SET attempt = c.attempt
RETURNING true AS found

-- Boundary (d).
-- name: tool_call_finished
WITH {_fence}, closed AS (
    UPDATE mcp_interaction c SET state = $14, finished_at = now(), duration_ms = $15, result = $16
    FROM fence WHERE c.id = $12 AND c.state = 'started'
    RETURNING c.id
), tally AS MATERIALIZED (
    SELECT count(*) AS calls FROM closed
), run AS (
    UPDATE investigation i SET
        revision = i.revision + 1, event_seq = i.event_seq + cardinality($3::uuid[]),
        tool_calls = i.tool_calls + tally.calls
    FROM fence, tally WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq
), {_events}, said AS (
    INSERT INTO message (execution, seq, role, content, tool_call_id, tool_name)
    SELECT $13, $17, $22, $18, $19, $20 FROM run
    ON CONFLICT DO NOTHING
), looped AS (
    UPDATE execution e SET loop = $21::jsonb FROM run WHERE e.id = $13
)
SELECT EXISTS (SELECT FROM mcp_interaction WHERE id = $12) AS found FROM run

-- The events of a stage with the names a reader knows them by.
-- name: stage_timeline
SELECT t.*, s.name AS stage_name, e.display_name AS agent_name
FROM timeline_event t
LEFT JOIN stage s ON s.id = t.stage
LEFT JOIN execution e ON e.id = t.execution
WHERE t.investigation = $1 AND t.stage = $2
ORDER BY t.seq
