-- Accepts and ends investigations.

-- name: accept
WITH accepted AS (
    INSERT INTO investigation (id, namespace, namespace_uid, name, alert_type, chain, chain_namespace, plan_hash,
        stages_planned, limit_seconds, namespace_limit, chain_limit, priority, reader, replay, scheduled, seal)
    VALUES (:id, :namespace, :namespace_uid, :name, :alert_type, :chain, :chain_namespace, :plan_hash, :stages_planned,
        :limit_seconds, :namespace_limit, :chain_limit, :priority, :reader, :cassette::bytea IS NOT NULL, :scheduled,
        {_first_head})
    ON CONFLICT (id) DO NOTHING
    RETURNING id, revision, seal
), sealed AS (
    INSERT INTO sealed_step (investigation, revision, keys, digests, head)
    SELECT id, revision, :seal_keys::text[], :seal_digests::bytea[], seal FROM accepted
), recorded AS (
    INSERT INTO replay_input (investigation, cassette) SELECT id, :cassette::bytea FROM accepted
    WHERE :cassette::bytea IS NOT NULL
), keyed AS (
    INSERT INTO precedent_key (investigation, namespace_uid, key)
    SELECT DISTINCT id, :namespace_uid, told FROM accepted, unnest(:precedent_keys::text[]) AS told
), rerun AS (
    SELECT id FROM investigation
    WHERE namespace = :namespace AND name = :retry_name::text AND namespace_uid = :namespace_uid AND parent IS NULL
        AND id::text = coalesce(:retry_uid::text, id::text) AND EXISTS (SELECT FROM accepted)
    ORDER BY accepted_at DESC LIMIT 1
), published_again AS (
    UPDATE investigation SET published_digest = NULL WHERE id IN (SELECT id FROM rerun)
)
INSERT INTO investigation_input (investigation, author, alert_data, runbook, plan, severity, alert_key, precedents,
    alert_uid, retry_of)
SELECT id, :author, :alert_data, :runbook, :plan, :severity, :alert_key, :precedents, :alert_uid,
    (SELECT id FROM rerun)
FROM accepted
RETURNING investigation

-- The desired state only moves forward. A pending run has no worker that could end it, so it ends here. The timeline
-- (event :event) reports that it did, or that the run is to conclude.
-- name: set_desired_state
WITH run AS (
    UPDATE investigation i SET
        desired_state = :desired, revision = revision + 1, event_seq = event_seq + 1,
        wake_at = CASE WHEN parked_at IS NULL THEN wake_at ELSE clock_timestamp() END,
        state = CASE WHEN state = 'pending' THEN 'cancelled' ELSE state END,
        finished_at = CASE WHEN state = 'pending' THEN now() END,
        failure_reason = CASE WHEN state = 'pending' THEN :failure_reason END,
        failure_message = CASE WHEN state = 'pending' THEN :failure_message END,
        seal = CASE WHEN state = 'pending' THEN {_ended_head} ELSE {_next_head} END
    WHERE id = :id AND state IN ('pending', 'running')
        AND array_position(ARRAY['Running', 'Concluded', 'Cancelled'], :desired)
            > array_position(ARRAY['Running', 'Concluded', 'Cancelled'], desired_state)
    RETURNING id, state, parent, revision, event_seq, failure_reason, failure_message, seal
), sealed AS (
    INSERT INTO sealed_step (investigation, revision, keys, digests, head)
    SELECT id, revision, CASE WHEN state = 'cancelled' THEN :ended_seal_keys::text[] ELSE :seal_keys::text[] END,
        CASE WHEN state = 'cancelled' THEN :ended_seal_digests::bytea[] ELSE :seal_digests::bytea[] END, seal
    FROM run
), told AS (
    INSERT INTO timeline_event (id, investigation, seq, revision, type, status, content, metadata)
    SELECT :event, id, event_seq, revision, 'notice', 'completed', coalesce(failure_message, :message),
        jsonb_build_object('reason', coalesce(failure_reason, :reason))
    FROM run
    ON CONFLICT DO NOTHING
)
SELECT state, parent IS NOT NULL AS question FROM run

-- The number of parked runs, and of those of the namespace of run :id.
-- name: parked
SELECT count(*) AS total, count(*) FILTER (WHERE p.namespace = i.namespace) AS of_namespace
FROM investigation i LEFT JOIN investigation p ON p.parked_at IS NOT NULL AND p.state = 'running'
WHERE i.id = :id

-- Parks a run until :until, and no longer than it may wait in all. What was decided since its claim wakes it at once.
-- name: park
UPDATE investigation SET
    parked_at = clock_timestamp(), parked_for = :reason, parked_note = :note, revision = revision + 1,
    wake_at = CASE
        WHEN wake_at IS NOT NULL OR desired_state <> 'Running' THEN clock_timestamp()
        ELSE least(:until, clock_timestamp() + greatest(:seconds - waited_seconds, 0) * interval '1 second')
    END,
    seconds_left = extract(epoch FROM deadline - clock_timestamp()), deadline = NULL,
    priority = greatest(priority, :priority)
WHERE id = :id AND state = 'running'
RETURNING wake_at <= clock_timestamp() AS woken

-- name: parked_runs
SELECT i.id, i.namespace, i.name, n.plan, n.author
FROM investigation i JOIN investigation_input n ON n.investigation = i.id
WHERE i.parked_at IS NOT NULL AND i.state = 'running' AND i.desired_state = 'Running'
    AND (:run::uuid IS NULL OR i.id = :run)
ORDER BY i.parked_at LIMIT :limit

-- Asked under the lock of claims.
-- name: is_parked
SELECT EXISTS (
    SELECT FROM investigation i WHERE i.id = :id AND i.parked_at IS NOT NULL AND i.state = 'running'
        AND NOT EXISTS (SELECT FROM lease l WHERE l.investigation = i.id)
)

-- name: give_back
DELETE FROM lease WHERE investigation = :investigation AND attempt = :attempt

-- name: was_parked
SELECT EXISTS (SELECT FROM investigation WHERE id = :id AND attempt = :attempt AND parked_at IS NOT NULL)

-- A run that is not parked at the moment remembers it, for it may be about to.
-- name: wake
UPDATE investigation SET wake_at = least(wake_at, clock_timestamp()), revision = revision + 1
WHERE id = :id AND state = 'running' AND (wake_at IS NULL OR wake_at > clock_timestamp())
RETURNING parked_at IS NOT NULL AS parked

-- The object is deleted: its record stays and is not published any more.
-- name: forget_object
UPDATE investigation SET object_deleted_at = now(), settled = true WHERE id = :id AND object_deleted_at IS NULL

-- Locks the lease FOR UPDATE first: steps in flight end before, and later ones do not find it.
-- name: lock_own_lease
SELECT attempt FROM lease WHERE investigation = :investigation AND attempt = :attempt FOR UPDATE

-- name: was_finished
SELECT EXISTS (SELECT FROM investigation WHERE id = :id AND attempt = :attempt AND state = :state)

-- Runs without a live worker that are past deadline and grace, or cancelled: only the sweep ends them. A pending run
-- has no deadline; it waits.
-- name: overdue
SELECT i.id, i.desired_state, i.parent IS NOT NULL AS question, l.investigation IS NOT NULL AS leased
FROM investigation i LEFT JOIN lease l ON l.investigation = i.id LEFT JOIN worker w ON w.id = l.worker
WHERE i.state IN ('pending', 'running') AND w.id IS NULL
    AND (i.deadline + :grace_seconds * interval '1 second' < clock_timestamp() OR i.desired_state = 'Cancelled')
ORDER BY i.accepted_at LIMIT 100

-- Whether call `c` was never sent: see `writer.sql`.
-- name: _unsent
(
    SELECT coalesce(
        bool_or(w.status = 'streaming' AND w.metadata->>'reason' = 'ProviderLimit')
            AND NOT bool_or(w.metadata->>'reason' = 'Retrying'), false
    )
    FROM timeline_event w WHERE w.investigation = :investigation AND w.model_call = c.id
)

-- The model calls that a run left open.
-- name: _left_open
open AS MATERIALIZED (
    SELECT c.id, {_unsent} AS unsent
    FROM stage s JOIN execution e ON e.stage = s.id JOIN llm_interaction c ON c.execution = e.id
    WHERE s.investigation = :investigation AND c.state = 'started'
), tally AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE NOT unsent) AS calls FROM open
)

-- name: _outcome
UPDATE investigation i SET
    state = :state, finished_at = clock_timestamp(), revision = i.revision + 1,
    waited_seconds = i.waited_seconds + coalesce(extract(epoch FROM clock_timestamp() - i.parked_at), 0),
    parked_at = NULL, parked_for = NULL, parked_note = NULL, wake_at = NULL, seconds_left = NULL,
    event_seq = i.event_seq + CASE WHEN :event::uuid IS NULL THEN 0 ELSE 1 END,
    final_analysis = :final_analysis, finding = :finding::jsonb, executive_summary = :executive_summary,
    executive_summary_error = :executive_summary_error,
    failure_reason = :failure_reason, failure_message = :failure_message, replay_report = :replay_report::jsonb,
    interrupted_model_calls = i.interrupted_model_calls + tally.calls,
    cost_complete = i.cost_complete AND tally.calls = 0,
    usage_complete = i.usage_complete AND tally.calls = 0,
    seal = {_next_head}

-- Closes everything that a run left open; :left_open becomes the state of what was still running. Event :event, if any,
-- reports why.
-- name: _closed
sealed AS (
    INSERT INTO sealed_step (investigation, revision, keys, digests, head)
    SELECT run.id, run.revision, :seal_keys::text[], :seal_digests::bytea[], run.seal FROM run
), told AS (
    INSERT INTO timeline_event (id, investigation, seq, revision, type, status, content, metadata)
    SELECT :event, run.id, run.event_seq, run.revision, CASE WHEN :state = 'cancelled' THEN 'notice' ELSE 'error' END,
        'completed', coalesce(:failure_message, ''), jsonb_build_object('reason', :failure_reason::text)
    FROM run WHERE :event::uuid IS NOT NULL
    ON CONFLICT DO NOTHING
), stages AS (
    UPDATE stage s SET
        state = :left_open, finished_at = clock_timestamp(), revision = run.revision, failure_reason = :failure_reason,
        failure_message = :failure_message
    FROM run WHERE s.investigation = run.id AND s.state = 'running'
), executions AS (
    UPDATE execution e SET
        state = :left_open, finished_at = clock_timestamp(), failure_reason = :failure_reason,
        failure_message = :failure_message
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
    UPDATE timeline_event t SET status = :left_open, revision = run.revision, updated_at = clock_timestamp()
    FROM run WHERE t.investigation = run.id AND t.status = 'streaming'
), leases AS (
    DELETE FROM lease l USING run WHERE l.investigation = run.id
)

-- The caller holds the lease or the claim lock, so no step is written at the same time.
-- name: close
WITH {_left_open}, run AS (
    {_outcome}
    FROM tally WHERE i.id = :investigation AND i.state IN ('pending', 'running')
    RETURNING i.id, i.revision, i.event_seq, i.seal
), {_closed}
SELECT id FROM run

-- The same in one round trip for the attempt that holds the lease. It locks the lease, as `lock_own_lease` does. This
-- statement does not see what a step wrote that ended meanwhile; the revision tells: then nothing is changed.
-- name: finish
WITH fence AS MATERIALIZED (
    SELECT investigation FROM lease WHERE investigation = :investigation AND attempt = :attempt FOR UPDATE
), seen AS MATERIALIZED (
    SELECT id, revision FROM investigation WHERE id = :investigation
), {_left_open}, run AS (
    {_outcome}
    FROM tally, fence JOIN seen ON seen.id = fence.investigation
    WHERE i.id = seen.id AND i.revision = seen.revision AND i.state IN ('pending', 'running')
    RETURNING i.id, i.revision, i.event_seq, i.seal
), {_closed}
SELECT id FROM run
