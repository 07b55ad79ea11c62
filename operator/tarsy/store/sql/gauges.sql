-- Reads queue depths, ages and overdue work for metrics, from partial indexes of open rows.

-- name: now
WITH open AS (
    SELECT state = 'pending' AS queued, parent IS NOT NULL AS question, accepted_at, parked_for, parked_at
    FROM investigation WHERE state IN ('pending', 'running')
)
SELECT runs.*, late.*, owed.*, told.*,
    (SELECT count(*) FROM worker WHERE expires_at > clock_timestamp()) AS workers
FROM (
    SELECT count(*) FILTER (WHERE queued AND NOT question) AS queued,
        count(*) FILTER (WHERE NOT queued AND NOT question AND parked_at IS NULL) AS running,
        count(*) FILTER (WHERE queued AND question) AS queued_questions,
        count(*) FILTER (WHERE NOT queued AND question AND parked_at IS NULL) AS running_questions,
        count(*) FILTER (WHERE parked_for = 'Approval') AS parked_approvals,
        count(*) FILTER (WHERE parked_for = 'ProviderLimit') AS parked_limits,
        count(*) FILTER (WHERE parked_for = 'Quota') AS parked_quotas,
        extract(epoch FROM clock_timestamp() - min(accepted_at) FILTER (WHERE queued AND NOT question))::float8 AS oldest
    FROM open
) runs, (
    SELECT count(*) AS unpublished, extract(epoch FROM clock_timestamp() - min(finished_at))::float8 AS lag
    FROM investigation WHERE NOT settled AND revision > published_revision
) late, (
    SELECT count(*) AS owed, extract(epoch FROM clock_timestamp() - min(opened_at))::float8 AS oldest_owed
    FROM incident WHERE manifest IS NOT NULL
) owed, (
    SELECT count(*) AS notices, extract(epoch FROM clock_timestamp() - min(made_at))::float8 AS oldest_notice
    FROM notice WHERE state = 'owed'
) told
