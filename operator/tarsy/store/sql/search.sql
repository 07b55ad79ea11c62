-- Lists of investigations: a page of those that pass the filters, in one order. A statement is put together from these
-- blocks; each parameter has one name, whatever blocks are used together.

-- A parked run that was woken waits for a worker.
-- name: _state
CASE WHEN i.parked_at IS NULL THEN i.state WHEN i.wake_at <= clock_timestamp() THEN 'pending' ELSE 'parked' END

-- Seconds since 1970 of its acceptance; less than the step between two ranks, so that the newest of a rank comes first.
-- name: _accepted_seconds
extract(epoch FROM i.accepted_at)

-- name: _severity_rank
(CASE n.severity WHEN 'Critical' THEN 3 WHEN 'Warning' THEN 2 WHEN 'Info' THEN 1 ELSE 0 END * 100000000000::numeric + {_accepted_seconds})

-- name: _confidence_rank
(CASE i.finding->>'confidence' WHEN 'High' THEN 4 WHEN 'Medium' THEN 3 WHEN 'Low' THEN 2 WHEN 'Inconclusive' THEN 1 ELSE 0
    END * 100000000000::numeric + {_accepted_seconds})

-- Seconds from start to end; -1 of what never started.
-- name: _duration
coalesce(extract(epoch FROM i.finished_at - i.started_at), -1)

-- name: page
SELECT i.id, i.namespace, i.namespace_uid, i.name, i.alert_type, i.chain, i.chain_namespace, {_state} AS state,
    i.desired_state,
    i.attempt, i.revision, i.accepted_at, i.started_at, i.finished_at, i.stages_planned + s.escalated AS stages_planned, i.input_tokens,
    i.output_tokens, i.thinking_tokens, i.cached_tokens, i.usage_complete, i.model_calls, i.tool_calls, i.cost_usd,
    i.cost_complete, i.budget_limit, i.budget_message, 
    (i.evidence_missing <> '{}' OR coalesce(i.finding->>'no_tool_called', '') = 'true') AS evidence_degraded, i.finding,
    i.executive_summary, i.failure_reason, i.failure_message, i.object_deleted_at, n.author->>'username' AS author,
    s.finished AS stages_finished, s.running AS current_stage, i.replay, i.flaws, i.incident_outcome, n.severity, n.alert_key
FROM (
    SELECT i.id FROM investigation i {from} WHERE i.parent IS NULL {filters} ORDER BY {order} LIMIT :limit
) found JOIN investigation i ON i.id = found.id JOIN investigation_input n ON n.investigation = i.id, LATERAL (
    SELECT count(*) FILTER (WHERE state NOT IN ('pending', 'running')) AS finished,
        count(*) FILTER (WHERE kind = 'escalation' OR kind = 'synthesis' AND EXISTS (
            SELECT FROM stage before
            WHERE before.investigation = i.id AND before.index = stage.index - 1 AND before.kind = 'escalation'
        )) AS escalated,
        (array_agg(name ORDER BY index DESC) FILTER (WHERE state = 'running'))[1] AS running
    FROM stage WHERE investigation = i.id
) s
ORDER BY {shown}

-- The number of investigations that pass the filters, and how many of them have each flaw, counted up to :limit.
-- name: count
WITH found AS (SELECT i.flaws FROM investigation i {from} WHERE i.parent IS NULL {filters} LIMIT :limit)
SELECT (SELECT count(*) FROM found) AS count,
    (SELECT jsonb_object_agg(flaw, count) FROM (
        SELECT flaw, count(*) FROM found, unnest(flaws) AS flaw GROUP BY flaw
    ) of_flaw) AS flaws

-- Texts in which words were found, in the order in which readers want to see them.
-- name: texts_of
SELECT i.id, ARRAY[coalesce(i.finding->>'summary', ''), coalesce(i.executive_summary, ''),
    left(coalesce(i.final_analysis, ''), 32768), left(n.alert_data, 32768)] AS texts
FROM investigation i JOIN investigation_input n ON n.investigation = i.id WHERE i.id = ANY(:ids::uuid[])

-- name: order_newest
i.accepted_at DESC, i.id DESC
-- name: order_newest_words
w.accepted_at DESC, w.investigation DESC
-- name: after_newest_words
AND (w.accepted_at, w.investigation) < (:after_key::timestamptz, :after_id::uuid)
-- name: after_newest
AND (i.accepted_at, i.id) < (:after_key::timestamptz, :after_id::uuid)

-- name: order_oldest
i.accepted_at, i.id
-- name: order_oldest_words
w.accepted_at, w.investigation
-- name: after_oldest_words
AND (w.accepted_at, w.investigation) > (:after_key::timestamptz, :after_id::uuid)
-- name: after_oldest
AND (i.accepted_at, i.id) > (:after_key::timestamptz, :after_id::uuid)

-- name: order_finished
i.finished_at DESC, i.id DESC
-- name: after_finished
AND (i.finished_at, i.id) < (:after_key::timestamptz, :after_id::uuid)
-- name: only_finished
AND i.finished_at IS NOT NULL

-- name: order_cost
coalesce(i.cost_usd, -1) DESC, i.id DESC
-- name: after_cost
AND (coalesce(i.cost_usd, -1), i.id) < (:after_key::numeric, :after_id::uuid)

-- name: order_tokens
i.input_tokens + i.output_tokens DESC, i.id DESC
-- name: after_tokens
AND (i.input_tokens + i.output_tokens, i.id) < (:after_key::bigint, :after_id::uuid)

-- name: order_duration
{_duration} DESC, i.id DESC
-- name: after_duration
AND ({_duration}, i.id) < (:after_key::numeric, :after_id::uuid)

-- name: order_severity
{_severity_rank} DESC, i.id DESC
-- name: after_severity
AND ({_severity_rank}, i.id) < (:after_key::numeric, :after_id::uuid)

-- name: order_confidence
{_confidence_rank} DESC, i.id DESC
-- name: after_confidence
AND ({_confidence_rank}, i.id) < (:after_key::numeric, :after_id::uuid)

-- name: no_replays
AND NOT i.replay
-- name: with_id
AND i.id = :id::uuid
-- name: in_namespace
AND i.namespace = :namespace::text AND i.namespace_uid = :namespace_uid::text
-- name: in_namespaces
AND i.namespace = ANY(:namespaces::text[]) AND i.namespace_uid = ANY(:namespace_uids::text[])
-- name: of_ids
AND i.id = ANY(:ids::uuid[])
-- name: in_states
AND {_state} = ANY(:states::text[])
-- Implied by the states that are asked for; an index holds the few runs of which it is true.
-- name: only_unfinished
AND i.state IN ('pending', 'running')
-- name: of_alert_type
AND i.alert_type = :alert_type::text
-- name: of_chain
AND i.chain = :chain::text
-- name: of_chain_namespace
AND i.chain_namespace = :chain_namespace::text
-- name: by_author
AND i.id IN (SELECT investigation FROM investigation_input WHERE author->>'username' = :author::text)
-- name: with_flaws
AND i.parent IS NULL AND i.flaws <> '{}' AND i.flaws && :flaws::text[]
-- name: of_severities
AND i.id IN (SELECT investigation FROM investigation_input WHERE severity = ANY(:severities::text[]))
-- name: with_outcomes
AND i.incident_outcome = ANY(:outcomes::text[])
-- name: since
AND i.accepted_at >= :since::timestamptz
-- name: until
AND i.accepted_at < :until::timestamptz

-- name: from_severity
JOIN investigation_input n ON n.investigation = i.id
-- name: from_words
JOIN investigation_words w ON w.investigation = i.id
-- name: with_words
AND w.words @@ to_tsquery('pg_catalog.simple', :words::text)

-- Runs of :ids that contain the text somewhere; :pattern is a pattern of ILIKE. Letters beyond ASCII are
-- case-sensitive: the rules of a language cost many times as much. The limit makes each timeline an index look-up,
-- never a scan of them all. `texts` is what surrounds the text in the timeline, where it is there, and the other texts.
-- name: holding
SELECT r.id, ARRAY[coalesce(told.piece, ''), left(n.alert_data, 8192), coalesce(i.executive_summary, ''),
    left(coalesce(i.final_analysis, ''), 8192)] AS texts
FROM unnest(:ids::uuid[]) AS r (id)
JOIN investigation i ON i.id = r.id JOIN investigation_input n ON n.investigation = r.id
LEFT JOIN LATERAL (
    SELECT true AS holds,
        substring(content FROM greatest(1, strpos(lower(content COLLATE "C"), lower(:text COLLATE "C")) - 200) FOR 600) AS piece
    FROM timeline_event WHERE investigation = r.id AND content COLLATE "C" ILIKE :pattern LIMIT 1
) told ON true
WHERE told.holds OR i.name COLLATE "C" ILIKE :pattern OR i.alert_type COLLATE "C" ILIKE :pattern
    OR n.alert_data COLLATE "C" ILIKE :pattern OR i.executive_summary COLLATE "C" ILIKE :pattern
    OR i.final_analysis COLLATE "C" ILIKE :pattern
