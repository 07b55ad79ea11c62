-- Reads the record for the projector, the HTTP API and the CLI.

-- A parked run that was woken waits for a worker.
-- name: _state
CASE WHEN parked_at IS NULL THEN state WHEN wake_at <= clock_timestamp() THEN 'pending' ELSE 'parked' END AS state

-- Of a finding with confidence High: how many such findings of its Chain people called right, and how many they judged,
-- among the newest verdicts that calibration counts (calibration.sql).
-- name: _high_verdicts
CASE WHEN finding ->> 'confidence' = 'High' THEN (
    SELECT ARRAY[count(*) FILTER (WHERE newest.verdict = 'Right'), count(*)]
    FROM (
        SELECT r.confidence, r.verdict FROM review_summary r
        WHERE r.chain_namespace = investigation.chain_namespace AND r.chain = investigation.chain
            AND r.verdict IS NOT NULL AND r.confidence IS NOT NULL
        ORDER BY r.finished_at DESC LIMIT :judged
    ) newest WHERE newest.confidence = 'High'
) END AS high_verdicts

-- The run that this one reruns, and the latest run that reruns this one, each as id and name.
-- name: _retry_of
(
    SELECT jsonb_build_array(o.id, o.name) FROM investigation_input n JOIN investigation o ON o.id = n.retry_of
    WHERE n.investigation = investigation.id
) AS retry_of

-- name: _retried_by
(
    SELECT jsonb_build_array(r.id, r.name) FROM investigation_input n JOIN investigation r ON r.id = n.investigation
    WHERE n.retry_of = investigation.id ORDER BY r.accepted_at DESC LIMIT 1
) AS retried_by

-- name: _columns
id, namespace, name, alert_type, chain, chain_namespace, plan_hash, stages_planned, {_state}, desired_state, attempt,
    revision, published_revision, accepted_at, started_at, finished_at, deadline, input_tokens, output_tokens,
    thinking_tokens, cached_tokens, usage_complete, model_calls, interrupted_model_calls, tool_calls,
    cost_usd, cost_complete, budget_limit, budget_message, evidence_missing, final_analysis, finding, executive_summary,
    executive_summary_error, failure_reason, failure_message, parent, published_digest, seal, replay, replay_report,
    parked_at, parked_for, parked_note, wake_at, waited_seconds, held_for, incident_outcome, {_high_verdicts},
    {_retry_of}, {_retried_by}

-- name: record
SELECT {_columns} FROM investigation WHERE id = :id

-- :namespace_uid keeps a namespace that was deleted and created again from reading records of its predecessor; null:
-- the latest namespace of that name.
-- name: find
SELECT {_columns} FROM investigation
WHERE namespace = :namespace AND name = :name AND parent IS NULL AND namespace_uid = coalesce(:namespace_uid, (
    SELECT namespace_uid FROM investigation WHERE namespace = :namespace ORDER BY accepted_at DESC LIMIT 1
))
ORDER BY accepted_at DESC LIMIT 1

-- name: answers
SELECT {_columns} FROM investigation WHERE parent = :parent ORDER BY place

-- name: unpublished
SELECT {_columns} FROM investigation
WHERE NOT settled AND revision > published_revision
    AND (state NOT IN ('pending', 'running') OR id <> ALL(:without::uuid[]))
ORDER BY accepted_at LIMIT :limit

-- name: stages
SELECT s.investigation, s.index, s.name, s.kind, s.state, s.expected_agents, s.started_at, s.finished_at,
    s.failure_reason, s.failure_message, s.word, {_actions} AS actions, i.replay,
    (
        SELECT count(*) FROM execution e
        WHERE e.stage = s.id AND e.parent IS NULL AND e.state NOT IN ('pending', 'running')
    ) AS agents_finished
FROM stage s JOIN investigation i ON i.id = s.investigation
WHERE s.investigation = ANY(:ids::uuid[]) ORDER BY s.investigation, s.index

-- The last changes of provider of each run, oldest first.
-- name: provider_changes
SELECT * FROM (
    SELECT t.investigation, t.seq, t.revision, coalesce(t.metadata->>'reason', '') AS reason,
        concat_ws('/', s.name, e.display_name) || ': ' || t.content AS message,
        row_number() OVER (PARTITION BY t.investigation ORDER BY t.seq DESC) AS latest
    FROM timeline_event t LEFT JOIN stage s ON s.id = t.stage LEFT JOIN execution e ON e.id = t.execution
    WHERE t.investigation = ANY(:ids::uuid[]) AND t.type = 'provider_fallback'
) change WHERE latest <= 20 ORDER BY investigation, seq

-- Those of :ids that nothing is left to publish of, and whose object has the status with this digest.
-- name: published
SELECT id, published_digest, finished_at FROM investigation
WHERE id = ANY(:ids::uuid[]) AND settled AND object_deleted_at IS NULL AND published_digest IS NOT NULL

-- At the revision that is published already, a digest replaces another one; null leaves it. A row that another transaction
-- holds, such as a step of the run that hangs, is left: waiting for it would hold the rows of all other runs, and with
-- them their steps.
-- name: mark_published
WITH free AS (
    SELECT id FROM investigation WHERE id = ANY(:ids::uuid[]) FOR NO KEY UPDATE SKIP LOCKED
), marked AS (
    UPDATE investigation i SET
        published_revision = p.revision,
        published_digest = p.digest,
        settled = i.settled OR (i.state NOT IN ('pending', 'running') AND p.revision >= i.revision)
    FROM unnest(:ids::uuid[], :revisions::bigint[], :digests::bytea[]) AS p (id, revision, digest) JOIN free USING (id)
    WHERE i.id = p.id AND (
        p.revision > i.published_revision
        OR (p.revision = i.published_revision AND i.published_digest IS DISTINCT FROM coalesce(p.digest, i.published_digest))
    )
)
SELECT id FROM investigation WHERE id = ANY(:ids::uuid[]) AND id NOT IN (SELECT id FROM free)

-- Events changed after revision :after, whole revisions at a time; with more than :limit events, at least :limit.
-- name: timeline
SELECT changed.*, s.name AS stage_name, e.display_name AS agent_name, p.display_name AS parent_name
FROM (
    SELECT * FROM timeline_event WHERE investigation = :investigation AND revision > :after
    ORDER BY revision FETCH FIRST :limit ROWS WITH TIES
) changed
LEFT JOIN stage s ON s.id = changed.stage
LEFT JOIN execution e ON e.id = changed.execution
LEFT JOIN execution p ON p.id = e.parent
ORDER BY changed.seq

-- Of the namespaces with these uids (null: all). A parked run that was woken waits for a worker.
-- name: queue_depth
SELECT count(*) FILTER (WHERE i.state = 'pending' OR i.wake_at <= now() AND i.parked_at IS NOT NULL) AS pending,
    count(*) FILTER (WHERE i.state = 'running' AND w.id IS NOT NULL) AS running,
    count(*) FILTER (WHERE i.state = 'running' AND w.id IS NULL AND i.parked_at IS NULL) AS orphaned,
    count(*) FILTER (WHERE i.parked_at IS NOT NULL AND (i.wake_at IS NULL OR i.wake_at > now())) AS parked
FROM investigation i LEFT JOIN lease l ON l.investigation = i.id
LEFT JOIN worker w ON w.id = l.worker AND w.expires_at > now()
WHERE i.state IN ('pending', 'running')
    AND (:namespace_uids::text[] IS NULL OR i.namespace_uid = ANY(:namespace_uids))

-- name: known
SELECT id FROM investigation WHERE id = ANY(:ids::uuid[])

-- Every run that waits or is in progress: a relist checks whether its object still exists.
-- name: unfinished
SELECT id FROM investigation WHERE state IN ('pending', 'running')

-- The messages of one model call: its own request, or the conversation at that time, with the contents sent then.
-- name: sent
SELECT m.role, m.content, NULL::jsonb AS tool_calls, NULL::text AS tool_call_id, NULL::text AS tool_name,
    NULL::jsonb AS provider_state, m.seq
FROM llm_interaction c,
    ROWS FROM (jsonb_to_recordset(c.request) AS (role text, content text)) WITH ORDINALITY AS m (role, content, seq)
WHERE c.id = :model_call
UNION ALL
SELECT m.role, coalesce(shown.content, m.content), m.tool_calls, m.tool_call_id, m.tool_name, m.provider_state, m.seq
FROM llm_interaction c JOIN message m ON m.execution = c.execution AND m.seq < c.message_count
LEFT JOIN LATERAL (
    SELECT s.content FROM superseded s
    WHERE s.execution = m.execution AND s.seq = m.seq AND s.call <= c.number ORDER BY s.call DESC LIMIT 1
) shown ON true
WHERE c.id = :model_call AND c.request IS NULL ORDER BY seq

-- name: _since
now() - make_interval(secs => :seconds)

-- Model calls begun in the last :seconds, summed by :by.
-- name: usage
WITH {_used_calls}
SELECT {_used_name} AS name, {_used_runs}, {_used_sums}
FROM calls c LEFT JOIN latest l ON l.namespace = c.namespace
GROUP BY 1 ORDER BY sum(c.cost_usd) DESC NULLS LAST, sum(c.input_tokens) DESC NULLS LAST, 1
