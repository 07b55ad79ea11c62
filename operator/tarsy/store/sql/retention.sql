-- Which records are old, and their deletion. $1 are the seconds that a record is kept after its run ended, $2 the
-- namespaces (none: all).

-- A run whose object was not told of its end has a day for that, so that nothing is `RecordLost` which has a finding.
-- name: _old
i.state NOT IN ('pending', 'running') AND i.finished_at < now() - make_interval(secs => $1)
    AND (i.settled OR i.finished_at < now() - interval '1 day')
    AND (cardinality($2::text[]) = 0 OR i.namespace = ANY($2::text[]))

-- name: survey
SELECT i.namespace, count(*) AS investigations, min(i.finished_at) AS oldest, max(i.finished_at) AS newest
FROM investigation i WHERE {_old} GROUP BY i.namespace ORDER BY i.namespace

-- name: lock
SELECT pg_advisory_xact_lock($1)

-- The oldest, $3 at most, as many as have about $4 rows together; one at least.
-- name: choose
SELECT id, namespace FROM (
    SELECT i.id, i.namespace, i.finished_at,
        sum(i.event_seq + 2 * (i.model_calls + i.interrupted_model_calls + i.tool_calls) + 10)
            OVER (ORDER BY i.finished_at, i.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS rows_before
    FROM investigation i WHERE {_old} ORDER BY i.finished_at, i.id LIMIT $3
) line WHERE coalesce(rows_before, 0) < $4

-- name: tool_sets
SELECT DISTINCT c.tool_set
FROM stage s JOIN execution e ON e.stage = s.id JOIN llm_interaction c ON c.execution = e.id
WHERE s.investigation = ANY($1::uuid[]) AND c.tool_set IS NOT NULL

-- name: delete
DELETE FROM investigation i
WHERE i.id = ANY($1::uuid[]) AND i.state NOT IN ('pending', 'running')
    AND NOT EXISTS (SELECT FROM lease l WHERE l.investigation = i.id)
RETURNING i.namespace

-- name: delete_tool_sets
DELETE FROM tool_set t
WHERE t.hash = ANY($1::text[]) AND NOT EXISTS (SELECT FROM llm_interaction c WHERE c.tool_set = t.hash)
