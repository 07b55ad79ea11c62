-- Reads what the writer of a run needs of its record: what earlier attempts left, and what was written since.

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

-- Closed tool calls that a finding cites, by their reference (record.ids.call_ref) or by the id of the row; of several
-- tries the last. Interrupted calls have no result, and what is said of sub-agents is none: their own calls are cited.
-- name: evidence
SELECT DISTINCT ON (cited.id) cited.id AS cited, c.id, s.name AS stage, e.display_name AS agent,
    concat_ws('.', nullif(c.server, ''), c.tool) AS tool, c.result, c.arguments, c.integrity, c.rung
FROM unnest(:call_ids::text[]) AS cited (id)
JOIN stage s ON s.investigation = :investigation
JOIN execution e ON e.stage = s.id
JOIN mcp_interaction c ON c.execution = e.id
    AND cited.id IN ('call_' || left(replace(c.idempotency_key, '-', ''), 12), c.id::text)
WHERE c.state IN ('completed', 'failed') AND c.result IS NOT NULL
    AND (c.server <> '' OR c.tool NOT IN ('dispatch_agent', 'list_agents', 'cancel_agent'))
ORDER BY cited.id, c.attempt DESC

-- name: is_confirmed
SELECT EXISTS (
    SELECT FROM stage s JOIN execution e ON e.stage = s.id JOIN mcp_interaction c ON c.execution = e.id
    WHERE s.investigation = :investigation AND c.state = 'completed'
        AND (c.integrity ->> 'class' = 'K' OR c.integrity -> 'control' -> 0 IS NOT NULL)
) AS confirmed

-- Calls of some stages that were made and did not fail, the latest ones; answers of TARSy itself are none.
-- name: handed_on
SELECT * FROM (
    SELECT c.server, c.tool, c.arguments, c.result, c.integrity, c.started_at, c.id
    FROM stage s JOIN execution e ON e.stage = s.id JOIN mcp_interaction c ON c.execution = e.id
    WHERE s.investigation = :investigation AND s.id = ANY(:stages::uuid[]) AND c.made AND c.state = 'completed'
        AND c.result IS NOT NULL AND c.server <> '' AND c.rung IS DISTINCT FROM 'simulated'
    ORDER BY c.started_at DESC, c.id DESC LIMIT :limit
) latest ORDER BY started_at, id

-- Tokens of the model calls of some stages; an estimate counts as input.
-- name: usage_of_stages
SELECT coalesce(sum(coalesce(c.input_tokens, c.estimated_tokens)), 0)::bigint AS input_tokens,
    coalesce(sum(c.output_tokens), 0)::bigint AS output_tokens
FROM stage s JOIN execution e ON e.stage = s.id JOIN llm_interaction c ON c.execution = e.id
WHERE s.investigation = :investigation AND s.id = ANY(:stages::uuid[])

-- Changes of calls that were refused because GitOps manages their objects.
-- name: changes_for_git
SELECT t.metadata -> 'change_for_git' AS change FROM timeline_event t
WHERE t.investigation = :investigation AND t.type = 'llm_tool_call' AND t.metadata -> 'change_for_git' IS NOT NULL
ORDER BY t.seq

-- A page of closed tool calls with the result of a server: of an execution with its parent and sub-agents, who tell each
-- other what they read, of the stages before it, and for a question of its investigation and of the other questions
-- about that. Answers of TARSy itself are none. Each run is found by an
-- index: as alternatives of one join, all investigations on record were read for every call.
-- name: told_results
SELECT c.id, c.idempotency_key, concat_ws('.', nullif(c.server, ''), c.tool) AS tool, c.arguments, c.result, c.integrity,
    ARRAY[CASE WHEN i.parent IS NULL THEN -1 ELSE coalesce(i.place, 0) END, s.index, e.index, c.message_seq, c.index] AS place
FROM execution me
JOIN stage mine ON mine.id = me.stage
JOIN investigation own ON own.id = mine.investigation
CROSS JOIN LATERAL (
    SELECT own.id UNION SELECT own.parent UNION SELECT other.id FROM investigation other WHERE other.parent = own.parent
) AS run (id)
JOIN investigation i ON i.id = run.id
JOIN stage s ON s.investigation = i.id
JOIN execution e ON e.stage = s.id
JOIN mcp_interaction c ON c.execution = e.id
WHERE me.id = :execution AND own.id = :investigation
    AND (coalesce(e.parent, e.id) = coalesce(me.parent, me.id) OR i.id <> own.id OR s.index < mine.index)
    AND c.made AND c.state IN ('completed', 'failed') AND c.result IS NOT NULL AND c.id <> ALL(:known::uuid[])
    AND (NOT :sensitive OR c.integrity @> '{"sensitive": true}')
ORDER BY c.id LIMIT :limit

-- Calls of a stage that were sent after people approved them.
-- name: actions
SELECT {_actions} AS calls FROM stage s WHERE s.id = :stage AND s.investigation = :investigation

-- The events of a stage with the names of stage and agent.
-- name: stage_timeline
SELECT t.*, s.name AS stage_name, e.display_name AS agent_name, p.display_name AS parent_name
FROM timeline_event t
LEFT JOIN stage s ON s.id = t.stage
LEFT JOIN execution e ON e.id = t.execution
LEFT JOIN execution p ON p.id = e.parent
WHERE t.investigation = :investigation AND t.stage = :stage
ORDER BY t.seq

-- Usage of the run by all its attempts; a call of unknown usage counts with its estimate.
-- name: history
SELECT
    extract(epoch FROM clock_timestamp() - coalesce(i.started_at, clock_timestamp()))::double precision
        - i.waited_seconds AS seconds,
    i.waited_seconds,
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
    SELECT count(*) FILTER (WHERE c.made) AS tool_calls, count(*) FILTER (WHERE c.made AND s.kind = 'action') AS action_calls,
        coalesce(max(c.duration_ms) FILTER (WHERE c.made), 0) / 1000.0::double precision AS tool_seconds,
        coalesce(bool_or(c.state <> 'started'), false) AS has_closed
    FROM stage s JOIN execution e ON e.stage = s.id JOIN mcp_interaction c ON c.execution = e.id
    WHERE s.investigation = i.id
) t
WHERE i.id = :investigation

-- Closed tool calls. A result is usable while no call that may have changed something began, ran or ended since the
-- call began; times are those of the statements that wrote them.
-- name: past_calls
WITH calls AS (
    SELECT c.*, s.kind = 'action' AS acts FROM stage s JOIN execution e ON e.stage = s.id JOIN mcp_interaction c ON c.execution = e.id
    WHERE s.investigation = :investigation
), change AS (
    SELECT max(coalesce(finished_at, 'infinity')) AS at FROM calls WHERE made AND access <> 'read-only'
)
SELECT c.id, c.execution, c.message_seq, c.index, c.server, c.tool, c.arguments, c.repeated_of,
    extract(epoch FROM clock_timestamp() - c.finished_at)::double precision AS age_seconds,
    c.made AND c.state = 'completed' AS answered, c.acts,
    c.made AND c.access = 'read-only' AND c.state = 'completed' AND (change.at IS NULL OR c.started_at >= change.at)
        AS usable
FROM calls c, change WHERE c.state <> 'started' ORDER BY c.finished_at
