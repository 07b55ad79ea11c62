-- Sums up usage and quality by the days that begin at :starts.

-- name: _since
(:starts::timestamptz[])[1]

-- Usage by group and day. A row is of a group (day null), of a group on a day (in_series; of the first :series groups, all
-- others together), or of everything (whole). Groups have their place by cost, then by tokens; from :limit on, they are one row.
-- name: daily_usage
WITH {_used_calls},
per_run AS MATERIALIZED (
    SELECT {_used_name} AS name, width_bucket(c.started_at, :starts::timestamptz[]) - 1 AS day,
        c.investigation AS run, bool_or(c.has_finding) AS finding, {_used_sums}
    FROM calls c LEFT JOIN latest l ON l.namespace = c.namespace
    GROUP BY 1, 2, 3
),
ranked AS (
    SELECT name,
        row_number() OVER (ORDER BY sum(cost_usd) DESC NULLS LAST, sum(input_tokens + output_tokens) DESC, name) AS place,
        count(*) OVER () AS groups
    FROM per_run GROUP BY name
),
placed AS (
    SELECT p.*, r.groups, least(r.place, :series::integer + 1) AS in_series, least(r.place, :limit::integer + 1) AS in_list
    FROM per_run p JOIN ranked r USING (name)
)
SELECT in_list, in_series, day, min(name) AS name, count(DISTINCT name) AS groups,
    count(DISTINCT run) AS investigations, count(DISTINCT run) FILTER (WHERE finding) AS findings,
    coalesce(sum(calls), 0)::bigint AS calls, coalesce(sum(interrupted), 0)::bigint AS interrupted,
    coalesce(sum(input_tokens), 0)::bigint AS input_tokens, coalesce(sum(output_tokens), 0)::bigint AS output_tokens,
    coalesce(sum(thinking_tokens), 0)::bigint AS thinking_tokens, coalesce(sum(cached_tokens), 0)::bigint AS cached_tokens,
    coalesce(sum(calls_of_unknown_usage), 0)::bigint AS calls_of_unknown_usage, sum(cost_usd) AS cost_usd,
    coalesce(sum(calls_of_unknown_cost), 0)::bigint AS calls_of_unknown_cost
FROM placed
GROUP BY GROUPING SETS ((in_list), (in_series, day), ())
ORDER BY in_list, in_series, day

-- Findings that ended on each day, by the outcome of their incident, the verdict of people, and the confidence of those
-- with a verdict.
-- name: finding_counts
SELECT width_bucket(i.finished_at, :starts::timestamptz[]) - 1 AS day, i.incident_outcome AS outcome, s.verdict,
    CASE WHEN s.verdict IS NOT NULL THEN s.confidence END AS confidence, count(*) AS findings
FROM investigation i LEFT JOIN review_summary s ON s.investigation = i.id
WHERE i.finished_at >= (:starts::timestamptz[])[1]
    AND i.finished_at IS NOT NULL AND i.finding IS NOT NULL AND i.parent IS NULL AND NOT i.replay
    AND (:namespace_uids::text[] IS NULL OR i.namespace_uid = ANY(:namespace_uids))
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4

-- Finished EvalRuns, the newest first, with the samples that passed.
-- name: measured_suites
SELECT r.namespace, r.suite_name AS suite, r.name AS run, r.chain_namespace || '/' || r.chain AS chain, r.finished_at,
    r.verdict, (SELECT count(*) FROM eval_sample s WHERE s.run = r.id) AS samples,
    (SELECT count(*) FROM eval_sample s WHERE s.run = r.id AND s.outcome = 'Passed') AS passed
FROM eval_run r
WHERE r.finished_at >= :since AND r.verdict IS NOT NULL
    AND (:namespace_uids::text[] IS NULL OR r.namespace_uid = ANY(:namespace_uids))
ORDER BY r.finished_at DESC, r.id LIMIT :limit
