-- How an investigation begins and how it ends.

-- name: accept
WITH accepted AS (
    INSERT INTO investigation (id, namespace, namespace_uid, name, alert_type, chain, chain_namespace, plan_hash,
        stages_planned, limit_seconds, namespace_limit, chain_limit, priority, reader)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $18)
    ON CONFLICT (id) DO NOTHING
    RETURNING id
)
INSERT INTO investigation_input (investigation, author, alert_data, runbook, plan)
SELECT id, $14, $15, $16, $17 FROM accepted
RETURNING investigation

-- Only ever further down the list. A pending run has nobody who could end it, so it ends here. The timeline (event $5)
-- tells that it did, or that the run shall conclude.
-- name: set_desired_state
WITH run AS (
    UPDATE investigation i SET
        desired_state = $2, revision = revision + 1, event_seq = event_seq + 1,
        state = CASE WHEN state = 'pending' THEN 'cancelled' ELSE state END,
        finished_at = CASE WHEN state = 'pending' THEN now() END,
        failure_reason = CASE WHEN state = 'pending' THEN $3 END,
        failure_message = CASE WHEN state = 'pending' THEN $4 END
    WHERE id = $1 AND state IN ('pending', 'running')
        AND array_position(ARRAY['Running', 'Concluded', 'Cancelled'], $2)
            > array_position(ARRAY['Running', 'Concluded', 'Cancelled'], desired_state)
    RETURNING id, state, parent, revision, event_seq, failure_reason, failure_message
), told AS (
    INSERT INTO timeline_event (id, investigation, seq, revision, type, status, content, metadata)
    SELECT $5, id, event_seq, revision, 'notice', 'completed', coalesce(failure_message, $7),
        jsonb_build_object('reason', coalesce(failure_reason, $6))
    FROM run
    ON CONFLICT DO NOTHING
)
SELECT state, parent IS NOT NULL AS question FROM run

-- The object is gone: its record stays, and nothing of it is published any more.
-- name: forget_object
UPDATE investigation SET object_deleted_at = now(), settled = true WHERE id = $1 AND object_deleted_at IS NULL

-- The lease is locked FOR UPDATE, first and at once: the steps in flight end before, and no later one finds it.
-- name: lock_own_lease
SELECT attempt FROM lease WHERE investigation = $1 AND attempt = $2 FOR UPDATE

-- name: was_finished
SELECT EXISTS (SELECT FROM investigation WHERE id = $1 AND attempt = $2 AND state = $3)

-- Runs that nobody alive holds, past deadline and grace, or cancelled: nobody else would end them. A pending run has
-- no deadline; it waits.
-- name: overdue
SELECT i.id, i.desired_state, i.parent IS NOT NULL AS question, l.investigation IS NOT NULL AS leased
FROM investigation i LEFT JOIN lease l ON l.investigation = i.id LEFT JOIN worker w ON w.id = l.worker
WHERE i.state IN ('pending', 'running') AND w.id IS NULL
    AND (i.deadline + $1 * interval '1 second' < clock_timestamp() OR i.desired_state = 'Cancelled')
ORDER BY i.accepted_at LIMIT 100

-- Whether call `c` waits for its turn: see `writer.sql`.
-- name: _unsent
(
    SELECT coalesce(
        bool_or(w.status = 'streaming' AND w.metadata->>'reason' = 'ProviderLimit')
            AND NOT bool_or(w.metadata->>'reason' = 'Retrying'), false
    )
    FROM timeline_event w WHERE w.investigation = $1 AND w.model_call = c.id
)

-- Everything a run left open is closed with it; $3 is the state of what was still running. Event $10, if any, tells why.
-- name: close
WITH open AS MATERIALIZED (
    SELECT c.id, {_unsent} AS unsent
    FROM stage s JOIN execution e ON e.stage = s.id JOIN llm_interaction c ON c.execution = e.id
    WHERE s.investigation = $1 AND c.state = 'started'
), tally AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE NOT unsent) AS calls FROM open
), run AS (
    UPDATE investigation i SET
        state = $2, finished_at = clock_timestamp(), revision = i.revision + 1,
        event_seq = i.event_seq + CASE WHEN $10::uuid IS NULL THEN 0 ELSE 1 END,
        final_analysis = $4, finding = $5::jsonb, executive_summary = $6, executive_summary_error = $7,
        failure_reason = $8, failure_message = $9,
        interrupted_model_calls = i.interrupted_model_calls + tally.calls,
        cost_complete = i.cost_complete AND tally.calls = 0,
        usage_complete = i.usage_complete AND tally.calls = 0
    FROM tally WHERE i.id = $1 AND i.state IN ('pending', 'running')
    RETURNING i.id, i.revision, i.event_seq
), told AS (
    INSERT INTO timeline_event (id, investigation, seq, revision, type, status, content, metadata)
    SELECT $10, run.id, run.event_seq, run.revision, CASE WHEN $2 = 'cancelled' THEN 'notice' ELSE 'error' END,
        'completed', coalesce($9, ''), jsonb_build_object('reason', $8::text)
    FROM run WHERE $10::uuid IS NOT NULL
    ON CONFLICT DO NOTHING
), stages AS (
    UPDATE stage s SET
        state = $3, finished_at = clock_timestamp(), revision = run.revision, failure_reason = $8, failure_message = $9
    FROM run WHERE s.investigation = run.id AND s.state = 'running'
), executions AS (
    UPDATE execution e SET
        state = $3, finished_at = clock_timestamp(), failure_reason = $8, failure_message = $9
    FROM run JOIN stage s ON s.investigation = run.id WHERE e.stage = s.id AND e.state = 'running'
), model_calls AS (
    UPDATE llm_interaction c SET
        state = 'interrupted', finished_at = clock_timestamp(),
        (input_tokens, output_tokens, thinking_tokens, cached_tokens, cost_usd) = (SELECT 0, 0, 0, 0, 0 WHERE open.unsent)
    FROM run, open WHERE c.id = open.id AND c.state = 'started'
), tool_calls AS (
    UPDATE mcp_interaction c SET state = 'interrupted', finished_at = clock_timestamp()
    FROM run JOIN stage s ON s.investigation = run.id JOIN execution e ON e.stage = s.id
    WHERE c.execution = e.id AND c.state = 'started'
), events AS (
    UPDATE timeline_event t SET status = $3, revision = run.revision, updated_at = clock_timestamp()
    FROM run WHERE t.investigation = run.id AND t.status = 'streaming'
), leases AS (
    DELETE FROM lease l USING run WHERE l.investigation = run.id
)
SELECT id FROM run
