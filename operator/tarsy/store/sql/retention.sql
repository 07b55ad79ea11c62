-- Finds and deletes old records. A record is kept for :seconds after its run ended; only those of :namespaces (none:
-- all), and only replays or none of them (:replays; null: both).

-- A run whose end is not in the status of its object yet is kept for a day more: no run with a finding is `RecordLost`.
-- name: _ended
i.state NOT IN ('pending', 'running') AND (i.settled OR i.finished_at < now() - interval '1 day')
    AND (cardinality(:namespaces::text[]) = 0 OR i.namespace = ANY(:namespaces::text[]))

-- name: _old
i.finished_at < now() - make_interval(secs => :seconds) AND {_ended} AND i.replay = coalesce(:replays, i.replay)

-- The recorded run of a replay; one of a file or of a case of a suite has none. A replay that ended without a worker has
-- no report, and its plan tells.
-- name: _source
coalesce(i.replay_report->>'source', CASE WHEN i.replay_report IS NULL THEN (
    SELECT n.plan::json->'replay'->>'of' FROM investigation_input n WHERE n.investigation = i.id
) END)::uuid

-- name: _copy
i.replay AND {_source} IS NOT NULL AND {_ended}

-- name: survey
WITH old AS MATERIALIZED (
    SELECT i.id, i.namespace, i.finished_at FROM investigation i WHERE {_old}
), copy AS (
    SELECT i.id, i.namespace, i.finished_at FROM investigation i WHERE {_copy} AND NOT EXISTS (
        SELECT FROM investigation s
        WHERE s.id = {_source} AND s.id NOT IN (SELECT old.id FROM old)
    )
)
SELECT namespace, count(*) AS investigations, min(finished_at) AS oldest, max(finished_at) AS newest
FROM (SELECT * FROM old UNION SELECT * FROM copy) line GROUP BY namespace ORDER BY namespace

-- A replay that has ended is not resumed, so nothing reads its copy of the record any more.
-- name: forget_inputs
DELETE FROM replay_input r USING investigation i
WHERE i.id = r.investigation AND i.state NOT IN ('pending', 'running')
    AND (cardinality(:namespaces::text[]) = 0 OR i.namespace = ANY(:namespaces::text[]))

-- name: lock
SELECT pg_advisory_xact_lock(:key)

-- The oldest runs: at most :runs, with about :rows rows together, and at least one.
-- name: choose
SELECT id, namespace FROM (
    SELECT i.id, i.namespace, i.finished_at,
        sum(i.event_seq + 2 * (i.model_calls + i.interrupted_model_calls + i.tool_calls) + 10)
            OVER (ORDER BY i.finished_at, i.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS rows_before
    FROM investigation i WHERE {_old} ORDER BY i.finished_at, i.id LIMIT :runs
) line WHERE coalesce(rows_before, 0) < :rows

-- Replays whose source has been deleted: their record has its results.
-- name: choose_copies
SELECT i.id, i.namespace FROM investigation i
WHERE {_copy} AND NOT EXISTS (SELECT FROM investigation s WHERE s.id = {_source})
ORDER BY i.finished_at, i.id LIMIT :runs

-- name: tool_sets
SELECT c.tool_set
FROM stage s JOIN execution e ON e.stage = s.id JOIN llm_interaction c ON c.execution = e.id
WHERE s.investigation = ANY(:ids::uuid[]) AND c.tool_set IS NOT NULL
UNION
SELECT e.offered FROM stage s JOIN execution e ON e.stage = s.id
WHERE s.investigation = ANY(:ids::uuid[]) AND e.offered IS NOT NULL

-- A run leaves its name, its times and the head of its seals.
-- name: delete
WITH gone AS (
    DELETE FROM investigation i
    WHERE i.id = ANY(:ids::uuid[]) AND i.state NOT IN ('pending', 'running')
        AND NOT EXISTS (SELECT FROM lease l WHERE l.investigation = i.id)
    RETURNING i.id, i.namespace, i.namespace_uid, i.name, i.finished_at, i.seal, i.parent
), erased AS (
    INSERT INTO erased_run (investigation, namespace, namespace_uid, name, finished_at, seal)
    SELECT id, namespace, namespace_uid, name, finished_at, seal FROM gone WHERE parent IS NULL
    ON CONFLICT DO NOTHING
)
SELECT namespace FROM gone

-- name: forget_erased
DELETE FROM erased_run WHERE erased_at < now() - interval '1 year'

-- name: delete_tool_sets
DELETE FROM tool_set t
WHERE t.hash = ANY(:hashes::text[]) AND NOT EXISTS (SELECT FROM llm_interaction c WHERE c.tool_set = t.hash)
    AND NOT EXISTS (SELECT FROM execution e WHERE e.offered = t.hash)
