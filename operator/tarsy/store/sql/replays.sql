-- Reads runs for replays, and what replays have asked.

-- A finished run with its input. Replays are left out: a copy of a record is no record.
-- name: run
SELECT i.id, i.namespace, i.name, i.alert_type, i.chain, i.chain_namespace, i.plan_hash, i.state, i.replay,
    coalesce(i.started_at, i.accepted_at) AS began, i.evidence_missing, n.alert_data, n.runbook, n.plan, n.precedents
FROM investigation i JOIN investigation_input n ON n.investigation = i.id
WHERE i.id = :run AND i.parent IS NULL

-- Definitions are those that the agent was offered; of runs by older code, those of its model calls.
-- name: agents
SELECT e.id, s.index AS stage, e.index, e.strategy, e.started_at AS began, e.result, e.instructions, offered.definitions,
    ARRAY(
        SELECT t.definitions FROM tool_set t WHERE t.hash IN (
            SELECT c.tool_set FROM llm_interaction c WHERE c.execution = e.id AND e.offered IS NULL
        ) ORDER BY t.hash
    ) AS sent
FROM stage s JOIN execution e ON e.stage = s.id LEFT JOIN tool_set offered ON offered.hash = e.offered
WHERE s.investigation = :run ORDER BY s.index, e.index

-- Tools of servers that were not what they were when the run began, as an agent found them.
-- name: changed
SELECT execution, metadata FROM timeline_event
WHERE investigation = :run AND type = 'notice' AND metadata->>'reason' = 'ToolsChanged' AND execution IS NOT NULL
ORDER BY seq

-- Calls that were made and have a result; of several tries, the one with it.
-- name: calls
SELECT c.id, c.execution, c.message_seq, c.index, c.server, c.tool, c.arguments, c.result, c.state = 'failed' AS is_error,
    c.access, c.repeatable, c.idempotency_key, c.started_at, c.integrity,
    (SELECT m.content FROM message m WHERE m.execution = c.execution AND m.seq = c.message_seq + 1 + c.index) AS told
FROM stage s JOIN execution e ON e.stage = s.id JOIN mcp_interaction c ON c.execution = e.id
WHERE s.investigation = :run AND c.made AND c.state IN ('completed', 'failed') AND c.result IS NOT NULL
ORDER BY c.started_at, c.id LIMIT :limit

-- name: access
SELECT DISTINCT ON (c.server, c.tool) c.server, c.tool, c.access, c.repeatable
FROM stage s JOIN execution e ON e.stage = s.id JOIN mcp_interaction c ON c.execution = e.id
WHERE s.investigation = :run ORDER BY c.server, c.tool, c.started_at

-- name: pins
SELECT server, tools FROM tool_pin WHERE investigation = :run

-- name: cassette
SELECT cassette FROM replay_input WHERE investigation = :run

-- Calls of a replay that needed an answer; of several tries the last.
-- name: asked
SELECT DISTINCT ON (s.index, e.index, c.message_seq, c.index) s.index AS stage, e.index AS agent, c.message_seq, c.index,
    concat_ws('.', nullif(c.server, ''), c.tool) AS tool, c.arguments, c.rung, c.cassette_line
FROM stage s JOIN execution e ON e.stage = s.id JOIN mcp_interaction c ON c.execution = e.id
WHERE s.investigation = :run AND c.made
ORDER BY s.index, e.index, c.message_seq, c.index, c.attempt DESC

-- name: native
SELECT count(*) AS uses FROM timeline_event
WHERE investigation = :run AND type IN ('code_execution', 'google_search_result', 'url_context_result')
