-- Reads the trace: model calls and tool calls of an investigation or of an answer to a question about it.

-- The latest run of that name in the namespace with that uid, or the one that is :run.
-- name: locate
SELECT id FROM investigation
WHERE namespace = :namespace AND name = :name AND namespace_uid = :namespace_uid AND parent IS NULL
    AND (:run::uuid IS NULL OR id = :run)
ORDER BY accepted_at DESC LIMIT 1

-- name: given
SELECT CASE WHEN i.parent IS NULL THEN n.alert_data ELSE '' END AS alert_data,
    CASE WHEN i.parent IS NOT NULL THEN coalesce(n.question, n.alert_data) END AS question,
    n.runbook, n.author->>'username' AS author, n.precedents
FROM investigation i JOIN investigation_input n ON n.investigation = i.id WHERE i.id = :run

-- The answers after place :after, with their questions.
-- name: answers
SELECT i.id, i.name, i.place, coalesce(n.question, n.alert_data) AS question, n.author->>'username' AS author,
    n.author->>'via' AS via,
    CASE WHEN i.parked_at IS NULL THEN i.state WHEN i.wake_at <= clock_timestamp() THEN 'pending' ELSE 'parked' END AS state,
    i.desired_state, i.revision, i.accepted_at, i.started_at, i.finished_at, i.final_analysis AS answer, i.input_tokens,
    i.output_tokens, i.thinking_tokens, i.cached_tokens, i.usage_complete, i.cost_usd, i.cost_complete,
    i.failure_reason, i.failure_message
FROM investigation i JOIN investigation_input n ON n.investigation = i.id
WHERE i.parent = :parent AND i.place > :after ORDER BY i.place LIMIT :limit

-- The latest answer to a question of that name.
-- name: answer_named
SELECT id FROM investigation WHERE parent = :parent AND name = :name ORDER BY place DESC LIMIT 1

-- name: unanswered
SELECT EXISTS (SELECT FROM investigation WHERE parent = :parent AND state IN ('pending', 'running')) AS found

-- Every agent of a run with its stage, its sub-agents after it; a stage without agents yet has one row.
-- name: agents
SELECT s.id AS stage, s.index AS stage_index, s.name AS stage_name, s.kind, s.state AS stage_state,
    s.started_at AS stage_started_at, s.finished_at AS stage_finished_at, s.expected_agents, s.parallel,
    s.success_policy, s.failure_reason AS stage_failure_reason, s.failure_message AS stage_failure_message, s.word,
    {_actions} AS actions, i.replay,
    e.id, e.index, e.agent, e.display_name, e.strategy, e.provider, e.model, e.state, e.started_at, e.finished_at,
    e.failure_reason, e.failure_message, e.parent, e.dispatched_by, e.task, e.hypothesis, e.verdict,
    coalesce((e.loop->>'iteration')::integer, 0) AS iterations, m.*, t.*
FROM stage s JOIN investigation i ON i.id = s.investigation LEFT JOIN execution e ON e.stage = s.id
LEFT JOIN LATERAL (
    SELECT count(*) AS model_calls, coalesce(sum(c.input_tokens), 0)::bigint AS input_tokens,
        coalesce(sum(c.output_tokens), 0)::bigint AS output_tokens,
        coalesce(sum(c.thinking_tokens), 0)::bigint AS thinking_tokens,
        coalesce(sum(c.cached_tokens), 0)::bigint AS cached_tokens,
        coalesce(bool_and(c.input_tokens IS NOT NULL OR unused.so), true) AS usage_complete,
        sum(c.cost_usd) AS cost_usd, coalesce(bool_and(c.cost_usd IS NOT NULL OR unused.so), true) AS cost_complete
    FROM llm_interaction c, LATERAL (SELECT c.state = 'failed' AND c.estimated_tokens = 0 AS so) unused
    WHERE c.execution = e.id
) m ON true
LEFT JOIN LATERAL (
    SELECT count(*) FILTER (WHERE c.made) AS tool_calls FROM mcp_interaction c WHERE c.execution = e.id
) t ON true
WHERE s.investigation = :investigation
ORDER BY s.index, CASE WHEN e.parent IS NULL THEN e.index ELSE e.index / 100 - 1 END, e.index

-- name: _calls
SELECT c.id, c.execution, c.started_at, c.finished_at, c.duration_ms, c.state, 'model' AS what, c.number, c.kind,
    c.provider, c.model, c.strategy, c.input_tokens, c.output_tokens, c.thinking_tokens, c.cached_tokens, c.cost_usd,
    c.failure_reason, c.failure_message, NULL::text AS server, NULL::text AS tool, NULL::integer AS message_seq,
    NULL::integer AS index, NULL::integer AS attempt, NULL::boolean AS made, NULL::uuid AS repeated_of,
    NULL::text AS refused, NULL::text AS access, NULL::text AS idempotency_key, NULL::text AS rung,
    NULL::integer AS cassette_line
FROM stage s JOIN execution e ON e.stage = s.id JOIN llm_interaction c ON c.execution = e.id
WHERE s.investigation = :investigation
UNION ALL
SELECT c.id, c.execution, c.started_at, c.finished_at, c.duration_ms, c.state, 'tool', NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, c.server, c.tool, c.message_seq, c.index, c.attempt, c.made,
    c.repeated_of, c.refused, c.access, c.idempotency_key, c.rung, c.cassette_line
FROM stage s JOIN execution e ON e.stage = s.id JOIN mcp_interaction c ON c.execution = e.id
WHERE s.investigation = :investigation

-- name: calls
SELECT * FROM ({_calls}) c WHERE :begun::timestamptz IS NULL OR (c.started_at, c.id) > (:begun, :last::uuid)
ORDER BY c.started_at, c.id LIMIT :limit

-- Tool calls of a run in the order in which its agents asked for them; of several tries the last.
-- name: placed_calls
SELECT DISTINCT ON (s.index, e.index, c.message_seq, c.index) s.name AS stage, e.display_name AS agent,
    concat_ws('.', nullif(c.server, ''), c.tool) AS tool, c.arguments
FROM stage s JOIN execution e ON e.stage = s.id JOIN mcp_interaction c ON c.execution = e.id
WHERE s.investigation = :investigation
ORDER BY s.index, e.index, c.message_seq, c.index, c.attempt DESC LIMIT :limit

-- A call must belong to the requested run, or to an answer to a question about it.
-- name: model_call
SELECT c.*, s.name AS stage_name, e.display_name AS agent_name, i.name AS run_name, i.parent, i.id AS run,
    a.content AS answer, a.tool_calls AS answer_calls, d.definitions
FROM llm_interaction c JOIN execution e ON e.id = c.execution JOIN stage s ON s.id = e.stage
JOIN investigation i ON i.id = s.investigation
LEFT JOIN message a ON a.execution = c.execution AND a.seq = c.message_seq
LEFT JOIN tool_set d ON d.hash = c.tool_set
WHERE c.id = :id AND (i.id = :investigation OR i.parent = :investigation)

-- Text of a call that is no message of the conversation: the summary of a result.
-- name: told
SELECT content FROM timeline_event
WHERE investigation = :investigation AND model_call = :model_call AND type = 'mcp_tool_summary'
ORDER BY seq DESC LIMIT 1

-- name: tool_call
SELECT c.*, s.name AS stage_name, e.display_name AS agent_name, i.name AS run_name, i.parent, i.id AS run,
    ARRAY(
        SELECT t.id FROM mcp_interaction t
        WHERE t.execution = c.execution AND t.message_seq = c.message_seq AND t.index = c.index ORDER BY t.attempt
    ) AS tries
FROM mcp_interaction c JOIN execution e ON e.id = c.execution JOIN stage s ON s.id = e.stage
JOIN investigation i ON i.id = s.investigation
WHERE c.id = :id AND (i.id = :investigation OR i.parent = :investigation)
