-- Writes each step of a run as one statement, hence one transaction and one round trip. Every step has :investigation,
-- :attempt and the timeline events (`:event_...`, arrays of one length) besides its own values.
--
-- Locks are always taken in this order, so that parallel agents of a run cannot deadlock: the
-- lease FOR SHARE, rows of the writer's own execution, the investigation, everything else. What is written after the
-- investigation is selected FROM run; nothing may read a data-modifying CTE in an expression of an UPDATE, only join
-- it.

-- name: _fence
fence AS MATERIALIZED (
    SELECT investigation FROM lease WHERE investigation = :investigation AND attempt = :attempt FOR SHARE
)

-- name: _run
run AS (
    UPDATE investigation i SET revision = i.revision + 1, event_seq = i.event_seq + cardinality(:event_ids::uuid[])
    FROM fence WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq
)

-- A closed event is never opened again; an event keeps its place whatever replaces it.
-- name: _events
events AS (
    INSERT INTO timeline_event AS t
        (id, investigation, seq, revision, type, status, content, metadata, stage, execution, model_call, tool_call)
    SELECT e.id, run.id, run.event_seq - cardinality(:event_ids::uuid[]) + e.place, run.revision,
        e.type, e.status, e.content, e.metadata, e.stage, e.execution, e.model_call, e.tool_call
    FROM run, unnest(
        :event_ids::uuid[], :event_types::text[], :event_statuses::text[], :event_contents::text[],
        :event_metadata::jsonb[], :event_stages::uuid[], :event_executions::uuid[], :event_model_calls::uuid[],
        :event_tool_calls::uuid[]
    ) WITH ORDINALITY
        AS e (id, type, status, content, metadata, stage, execution, model_call, tool_call, place)
    ON CONFLICT (id) DO UPDATE SET
        revision = excluded.revision, type = excluded.type, status = excluded.status, content = excluded.content,
        metadata = excluded.metadata, stage = excluded.stage, execution = excluded.execution,
        model_call = excluded.model_call, tool_call = excluded.tool_call, updated_at = now()
    WHERE t.status = 'streaming' OR excluded.status <> 'streaming'
)

-- Whether call `c` waits for its provider's rate limit and no try of it was sent before. Such a call has used nothing
-- and is not counted.
-- name: _unsent
(
    SELECT coalesce(
        bool_or(w.status = 'streaming' AND w.metadata->>'reason' = 'ProviderLimit')
            AND NOT bool_or(w.metadata->>'reason' = 'Retrying'), false
    )
    FROM timeline_event w WHERE w.investigation = :investigation AND w.model_call = c.id
)

-- name: write_events
WITH {_fence}, {_run}, {_events}
SELECT true AS found FROM run

-- The tools that the run first saw stay; the update without effect makes the statement return their row.
-- name: pin_tools
WITH {_fence}, {_run}, {_events}, pinned AS (
    INSERT INTO tool_pin AS p (investigation, server, tools)
    SELECT run.id, s.name, s.tools FROM run, unnest(:servers::text[], :tools::jsonb[]) AS s (name, tools)
    ON CONFLICT (investigation, server) DO UPDATE SET server = p.server
    RETURNING p.server, p.tools
)
SELECT true AS found, (SELECT jsonb_object_agg(server, tools) FROM pinned) AS pins FROM run

-- name: degrade_evidence
WITH {_fence}, run AS (
    UPDATE investigation i SET
        revision = i.revision + 1, event_seq = i.event_seq + cardinality(:event_ids::uuid[]),
        evidence_missing = i.evidence_missing || :missing::jsonb
    FROM fence WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq
), {_events}
SELECT true AS found FROM run

-- The first limit that is reached stays.
-- name: budget_exceeded
WITH {_fence}, run AS (
    UPDATE investigation i SET
        revision = i.revision + 1, event_seq = i.event_seq + cardinality(:event_ids::uuid[]),
        budget_message = CASE WHEN i.budget_limit IS NULL THEN :budget_message ELSE i.budget_message END,
        budget_limit = coalesce(i.budget_limit, :budget_limit)
    FROM fence WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq
), {_events}
SELECT true AS found FROM run

-- name: begin_stage
WITH {_fence}, {_run}, {_events}, begun AS (
    INSERT INTO stage AS s (id, investigation, index, name, kind, expected_agents, parallel, success_policy, revision)
    SELECT :id, run.id, :index, :name, :kind, :expected_agents, :parallel, :success_policy, run.revision FROM run
    ON CONFLICT (id) DO UPDATE SET revision = excluded.revision
    RETURNING s.state, s.failure_reason, s.failure_message
)
SELECT true AS found, begun.* FROM begun

-- A stage that is closed stays as it was closed.
-- name: finish_stage
WITH {_fence}, {_run}, {_events}, closed AS (
    UPDATE stage s SET
        state = :state, failure_reason = :failure_reason, failure_message = :failure_message, finished_at = now(),
        revision = run.revision
    FROM run WHERE s.id = :id AND s.state = 'running'
)
SELECT EXISTS (SELECT FROM stage WHERE id = :id) AS found FROM run

-- Model calls that an earlier attempt left open are interrupted, and so are the events it left streaming. Tool calls
-- stay `started`: the engine decides whether to make them again.
-- name: begin_execution
WITH {_fence}, interrupted AS (
    UPDATE llm_interaction c SET
        state = 'interrupted', finished_at = now(),
        (input_tokens, output_tokens, thinking_tokens, cached_tokens, cost_usd) = (SELECT 0, 0, 0, 0, 0 WHERE {_unsent})
    FROM fence WHERE c.execution = :id AND c.state = 'started'
    RETURNING c.input_tokens
), tally AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE input_tokens IS NULL) AS calls FROM interrupted
), run AS (
    UPDATE investigation i SET
        revision = i.revision + 1, event_seq = i.event_seq + cardinality(:event_ids::uuid[]),
        interrupted_model_calls = i.interrupted_model_calls + tally.calls,
        cost_complete = i.cost_complete AND tally.calls = 0,
        usage_complete = i.usage_complete AND tally.calls = 0
    FROM fence, tally WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq
), {_events}, left_open AS (
    UPDATE timeline_event t SET status = 'interrupted', revision = run.revision, updated_at = now()
    FROM run WHERE t.investigation = run.id AND t.execution = :id AND t.status = 'streaming'
), parent AS (
    UPDATE stage s SET revision = run.revision FROM run WHERE s.id = :stage
), begun AS (
    INSERT INTO execution AS e (id, stage, index, agent, display_name, strategy, provider, model)
    SELECT :id, :stage, :index, :agent, :display_name, :strategy, :provider, :model FROM run
    ON CONFLICT (id) DO UPDATE SET index = e.index
    RETURNING e.state, e.started_at, e.loop, e.result, e.failure_reason, e.failure_message
)
SELECT true AS found, begun.*, EXISTS (SELECT FROM execution WHERE id = :id) AS existed,
    (SELECT coalesce(max(number) + 1, 0) FROM llm_interaction WHERE execution = :id) AS model_calls
FROM begun

-- The conversation so far, in order. Parallel tool calls may leave a gap: one is answered, an earlier one is not yet.
-- name: messages
SELECT seq, role, content, tool_calls, tool_call_id, tool_name, provider_state FROM message
WHERE execution = :execution ORDER BY seq

-- Compacted contents, which are sent instead of those of the messages.
-- name: superseded
SELECT DISTINCT ON (seq) seq, content FROM superseded WHERE execution = :execution ORDER BY seq, call DESC

-- Tool calls without a message: those whose latest try is open. One with a result was answered, but its summary for the
-- model was to be made first; `summary` is that summary, once it was made.
-- name: unanswered
SELECT latest.message_seq, latest.index, latest.attempt, latest.state, latest.made, latest.result, (
    SELECT t.content FROM timeline_event t
    WHERE t.investigation = :investigation AND t.tool_call = latest.id
        AND t.type = 'mcp_tool_summary' AND t.status = 'completed'
    ORDER BY t.seq DESC LIMIT 1
) AS summary
FROM (
    SELECT DISTINCT ON (message_seq, index) id, message_seq, index, attempt, state, made, result
    FROM mcp_interaction WHERE execution = :execution ORDER BY message_seq, index, attempt DESC
) latest WHERE latest.state = 'started'

-- Calls and events that the execution left open (an iteration timed out during a call) are closed with it.
-- name: finish_execution
WITH {_fence}, interrupted AS (
    UPDATE llm_interaction c SET
        state = 'interrupted', finished_at = now(),
        (input_tokens, output_tokens, thinking_tokens, cached_tokens, cost_usd) = (SELECT 0, 0, 0, 0, 0 WHERE {_unsent})
    FROM fence WHERE c.execution = :id AND c.state = 'started'
    RETURNING c.input_tokens
), tally AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE input_tokens IS NULL) AS calls FROM interrupted
), given_up AS (
    UPDATE mcp_interaction c SET state = 'interrupted', finished_at = now()
    FROM fence WHERE c.execution = :id AND c.state = 'started'
), run AS (
    UPDATE investigation i SET
        revision = i.revision + 1, event_seq = i.event_seq + cardinality(:event_ids::uuid[]),
        interrupted_model_calls = i.interrupted_model_calls + tally.calls,
        cost_complete = i.cost_complete AND tally.calls = 0,
        usage_complete = i.usage_complete AND tally.calls = 0
    FROM fence, tally WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq
), {_events}, left_open AS (
    UPDATE timeline_event t SET
        status = CASE WHEN :state = 'completed' THEN 'interrupted' ELSE :state END, revision = run.revision,
        updated_at = now()
    FROM run
    WHERE t.investigation = run.id AND t.execution = :id AND t.status = 'streaming' AND t.id <> ALL(:event_ids::uuid[])
), closed AS (
    UPDATE execution e SET
        state = :state, result = :result, failure_reason = :failure_reason, failure_message = :failure_message,
        finished_at = now()
    FROM run WHERE e.id = :id AND e.state = 'running'
    RETURNING e.stage
), parent AS (
    UPDATE stage s SET revision = run.revision FROM run, closed WHERE s.id = closed.stage
)
SELECT EXISTS (SELECT FROM execution WHERE id = :id) AS found FROM run

-- Boundary (a). :tools are the definitions of tool set :tool_set, or null when this writer has stored them before. A
-- set that exists is locked and not changed: retention might be deleting it with the last record that used it.
-- name: model_call_started
WITH {_fence}, {_run}, {_events}, tools AS (
    INSERT INTO tool_set AS t (hash, definitions)
    SELECT :tool_set, :tools::jsonb FROM run WHERE :tools::jsonb IS NOT NULL
    ON CONFLICT (hash) DO UPDATE SET definitions = t.definitions WHERE false
), said AS (
    INSERT INTO message (execution, seq, role, content, tool_calls, tool_call_id, tool_name, provider_state)
    SELECT :execution, :first_seq + m.place - 1, m.role, m.content, m.tool_calls, m.tool_call_id, m.tool_name,
        m.provider_state
    FROM run, unnest(
        :roles::text[], :contents::text[], :tool_calls::jsonb[], :tool_call_ids::text[], :tool_names::text[],
        :provider_states::jsonb[]
    ) WITH ORDINALITY
        AS m (role, content, tool_calls, tool_call_id, tool_name, provider_state, place)
    ON CONFLICT DO NOTHING
), compacted AS (
    INSERT INTO superseded (execution, seq, call, content)
    SELECT :execution, m.seq, :number, m.content
    FROM run, unnest(:superseded_seqs::integer[], :superseded_contents::text[]) AS m (seq, content)
    ON CONFLICT DO NOTHING
), looped AS (
    UPDATE execution e SET loop = :loop::jsonb FROM run WHERE e.id = :execution AND :loop::jsonb IS NOT NULL
)
INSERT INTO llm_interaction AS c (id, execution, number, kind, provider, model, strategy, message_count, tool_set,
    estimated_tokens, estimated_cost_usd, request)
SELECT :id, :execution, :number, :kind, :provider, :model, :strategy, :message_count, :tool_set, :estimated_tokens,
    :estimated_cost_usd, :request
FROM run
ON CONFLICT (id) DO UPDATE SET number = c.number
RETURNING true AS found

-- Boundary (b). Only an open call is counted, so a step written twice counts once. The message is the answer or, when
-- the answer was lost, a note about that to the model.
-- name: model_call_finished
WITH {_fence}, closed AS (
    UPDATE llm_interaction c SET
        state = :state, finished_at = now(), duration_ms = :duration_ms, thinking = :thinking,
        response_metadata = :response_metadata,
        message_seq = CASE WHEN :state = 'completed' THEN :message_seq::integer END,
        input_tokens = :input_tokens, output_tokens = :output_tokens, thinking_tokens = :thinking_tokens,
        cached_tokens = :cached_tokens,
        failure_reason = :failure_reason, failure_message = :failure_message,
        cost_usd = :cost_usd, estimated_tokens = :estimated_tokens, estimated_cost_usd = :estimated_cost_usd
    FROM fence WHERE c.id = :id AND c.state = 'started'
    RETURNING c.id
), tally AS MATERIALIZED (
    SELECT count(*) AS calls FROM closed
), run AS (
    UPDATE investigation i SET
        revision = i.revision + 1, event_seq = i.event_seq + cardinality(:event_ids::uuid[]),
        model_calls = i.model_calls + CASE WHEN :state = 'interrupted' THEN 0 ELSE tally.calls END,
        interrupted_model_calls = i.interrupted_model_calls
            + CASE WHEN :state = 'interrupted' AND (:input_tokens IS NULL OR :input_tokens + :output_tokens > 0)
                THEN tally.calls ELSE 0 END,
        input_tokens = i.input_tokens + tally.calls * coalesce(:input_tokens, 0),
        output_tokens = i.output_tokens + tally.calls * coalesce(:output_tokens, 0),
        thinking_tokens = i.thinking_tokens + tally.calls * coalesce(:thinking_tokens, 0),
        cached_tokens = i.cached_tokens + tally.calls * coalesce(:cached_tokens, 0),
        usage_complete = i.usage_complete AND :usage_complete,
        cost_usd = CASE WHEN :cost_usd::numeric IS NULL THEN i.cost_usd
            ELSE coalesce(i.cost_usd, 0) + tally.calls * :cost_usd::numeric END,
        cost_complete = i.cost_complete AND (tally.calls = 0 OR :cost_usd::numeric IS NOT NULL)
    FROM fence, tally WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq
), {_events}, said AS (
    INSERT INTO message (execution, seq, role, content, tool_calls, provider_state)
    SELECT :execution, :message_seq, :role, :content, :tool_calls::jsonb, :provider_state::jsonb
    FROM run WHERE :message_seq::integer IS NOT NULL
    ON CONFLICT DO NOTHING
), looped AS (
    UPDATE execution e SET loop = :loop::jsonb FROM run WHERE e.id = :execution
)
SELECT EXISTS (SELECT FROM llm_interaction WHERE id = :id) AS found FROM run

-- Boundary (c). Earlier tries of the same call, left open by dead attempts, are interrupted.
-- name: tool_call_started
WITH {_fence}, {_run}, {_events}, given_up AS (
    UPDATE mcp_interaction c SET state = 'interrupted', finished_at = now()
    FROM run
    WHERE c.execution = :execution AND c.message_seq = :message_seq AND c.index = :index
        AND c.attempt < :call_attempt AND c.state = 'started'
)
INSERT INTO mcp_interaction AS c
    (id, execution, message_seq, index, attempt, call_id, server, tool, arguments, idempotency_key,
    made, repeatable, repeated_of, access, refused)
SELECT :id, :execution, :message_seq, :index, :call_attempt, :call_id, :server, :tool, :arguments, :idempotency_key,
    :made, :repeatable, :repeated_of, :access, :refused
FROM run
ON CONFLICT (id) DO UPDATE SET attempt = c.attempt
RETURNING true AS found

-- The result of a call that stays open, because its summary for the model is to be made first.
-- name: tool_call_answered
WITH {_fence}, {_run}, {_events}
UPDATE mcp_interaction c SET duration_ms = :duration_ms, result = :result
FROM run WHERE c.id = :id
RETURNING true AS found

-- Boundary (d). A result that was written before stays, with its duration.
-- name: tool_call_finished
WITH {_fence}, closed AS (
    UPDATE mcp_interaction c SET
        state = :state, finished_at = now(), duration_ms = coalesce(c.duration_ms, :duration_ms),
        result = coalesce(c.result, :result)
    FROM fence WHERE c.id = :id AND c.state = 'started'
    RETURNING c.made
), tally AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE made) AS calls FROM closed
), run AS (
    UPDATE investigation i SET
        revision = i.revision + 1, event_seq = i.event_seq + cardinality(:event_ids::uuid[]),
        tool_calls = i.tool_calls + tally.calls
    FROM fence, tally WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq
), {_events}, said AS (
    INSERT INTO message (execution, seq, role, content, tool_call_id, tool_name)
    SELECT :execution, :message_seq, :role, :content, :tool_call_id, :tool_name FROM run
    ON CONFLICT DO NOTHING
), looped AS (
    UPDATE execution e SET loop = :loop::jsonb FROM run WHERE e.id = :execution
)
SELECT EXISTS (SELECT FROM mcp_interaction WHERE id = :id) AS found FROM run

-- Closed tool calls that a finding cites, by their reference (record.ids.call_ref) or by the id of the row; of several
-- tries the last. Interrupted calls have no result.
-- name: evidence
SELECT DISTINCT ON (cited.id) cited.id AS cited, c.id, s.name AS stage, e.display_name AS agent,
    concat_ws('.', nullif(c.server, ''), c.tool) AS tool, c.result
FROM unnest(:call_ids::text[]) AS cited (id)
JOIN stage s ON s.investigation = :investigation
JOIN execution e ON e.stage = s.id
JOIN mcp_interaction c ON c.execution = e.id
    AND cited.id IN ('call_' || left(replace(c.idempotency_key, '-', ''), 12), c.id::text)
WHERE c.state IN ('completed', 'failed') AND c.result IS NOT NULL
ORDER BY cited.id, c.attempt DESC

-- The events of a stage with the names of stage and agent.
-- name: stage_timeline
SELECT t.*, s.name AS stage_name, e.display_name AS agent_name
FROM timeline_event t
LEFT JOIN stage s ON s.id = t.stage
LEFT JOIN execution e ON e.id = t.execution
WHERE t.investigation = :investigation AND t.stage = :stage
ORDER BY t.seq

-- Usage of the run by all its attempts; a call of unknown usage counts with its estimate.
-- name: history
SELECT
    extract(epoch FROM clock_timestamp() - coalesce(i.started_at, clock_timestamp()))::double precision AS seconds,
    i.budget_limit, i.budget_message, m.*, t.*,
    (SELECT array_agg(s.id) FROM stage s WHERE s.investigation = i.id) AS stages
FROM investigation i, LATERAL (
    SELECT coalesce(sum(coalesce(c.input_tokens + c.output_tokens, c.estimated_tokens)), 0)::bigint AS tokens,
        coalesce(sum(coalesce(c.cost_usd, c.estimated_cost_usd)), 0) AS cost_usd,
        coalesce(bool_or(c.input_tokens IS NULL AND c.estimated_tokens > 0), false) AS estimated,
        coalesce(max(c.duration_ms), 0) / 1000.0::double precision AS model_seconds
    FROM stage s JOIN execution e ON e.stage = s.id JOIN llm_interaction c ON c.execution = e.id
    WHERE s.investigation = i.id
) m, LATERAL (
    SELECT count(*) AS tool_calls, coalesce(max(c.duration_ms), 0) / 1000.0::double precision AS tool_seconds
    FROM stage s JOIN execution e ON e.stage = s.id JOIN mcp_interaction c ON c.execution = e.id
    WHERE s.investigation = i.id AND c.made
) t
WHERE i.id = :investigation

-- Closed tool calls. A result is usable while no call that may have changed something began, ran or ended since the
-- call began; times are those of the statements that wrote them.
-- name: past_calls
WITH calls AS (
    SELECT c.* FROM stage s JOIN execution e ON e.stage = s.id JOIN mcp_interaction c ON c.execution = e.id
    WHERE s.investigation = :investigation
), change AS (
    SELECT max(coalesce(finished_at, 'infinity')) AS at FROM calls WHERE made AND access <> 'read-only'
)
SELECT c.id, c.execution, c.message_seq, c.index, c.server, c.tool, c.arguments, c.repeated_of,
    extract(epoch FROM clock_timestamp() - c.finished_at)::double precision AS age_seconds,
    c.made AND c.access = 'read-only' AND c.state = 'completed' AND (change.at IS NULL OR c.started_at > change.at)
        AS usable
FROM calls c, change WHERE c.state <> 'started' ORDER BY c.finished_at
