-- Publishes quotas, and reads what counts against them. The arithmetic of calls and runs is in migration 39.

-- The newest generation that was published counts; runs that a quota of the namespace holds are looked at anew.
-- name: publish
WITH known AS (
    SELECT uid, period FROM quota WHERE uid = :uid
), published AS (
    INSERT INTO quota AS q (uid, namespace, name, generation, period, cost_usd, tokens, investigations, on_exceeded, shares)
    VALUES (:uid, :namespace, :name, :generation, :period, :cost_usd, :tokens, :investigations, :on_exceeded, :shares)
    ON CONFLICT (uid) DO UPDATE SET
        generation = excluded.generation, period = excluded.period, cost_usd = excluded.cost_usd,
        tokens = excluded.tokens, investigations = excluded.investigations, on_exceeded = excluded.on_exceeded,
        shares = excluded.shares
    WHERE q.generation < excluded.generation
    RETURNING q.uid
), released AS (
    UPDATE investigation i SET held_until = NULL FROM published
    WHERE i.namespace = :namespace AND i.state = 'pending' AND i.held_until IS NOT NULL
)
SELECT NOT EXISTS (SELECT FROM known) OR EXISTS (SELECT FROM known WHERE period <> :period) AS anew FROM published

-- No call is reserved or settled in the quota while it is counted anew.
-- name: lock
SELECT FROM quota WHERE uid = :uid FOR UPDATE

-- Forgets the periods of a quota that is counted anew.
-- name: forget_usage
DELETE FROM quota_usage WHERE quota = :uid

-- A quota with its current period.
-- name: _now
now AS (
    SELECT q.uid, q.namespace,
        date_trunc(q.period, clock_timestamp() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' AS starts_at,
        (date_trunc(q.period, clock_timestamp() AT TIME ZONE 'UTC') + ('1 ' || q.period)::interval) AT TIME ZONE 'UTC'
            AS ends_at
    FROM quota q WHERE q.uid = :uid
)

-- Counts what the record has of the period: runs that started in it, and calls that began in it and have ended.
-- name: count_anew
WITH {_now}, counted AS (
    SELECT quota_share(i) AS share, count(*) AS investigations, 0 AS tokens, 0 AS usd
    FROM now JOIN investigation i ON i.namespace = now.namespace
    WHERE i.started_at >= now.starts_at AND i.parent IS NULL AND i.triage_for IS NULL
    GROUP BY quota_share(i)
    UNION ALL
    SELECT quota_share(i), 0, sum(coalesce(c.input_tokens + c.output_tokens, c.estimated_tokens)),
        sum(coalesce(c.cost_usd, c.estimated_cost_usd))
    FROM now JOIN llm_interaction c ON c.started_at >= now.starts_at AND c.state <> 'started'
    JOIN execution e ON e.id = c.execution JOIN stage s ON s.id = e.stage
    JOIN investigation i ON i.id = s.investigation AND i.namespace = now.namespace
    GROUP BY quota_share(i)
    UNION ALL
    SELECT 'replays', 0, sum(judge_tokens(c)), sum(judge_cost(c))
    FROM now JOIN judge_spending c ON c.namespace = now.namespace AND c.started_at >= now.starts_at
        AND c.state <> 'started'
    HAVING count(*) > 0
)
INSERT INTO quota_usage (quota, starts_at, share, ends_at, spent_usd, spent_tokens, investigations)
SELECT now.uid, now.starts_at, s.share, now.ends_at, sum(c.usd), sum(c.tokens), sum(c.investigations)
FROM now, counted c CROSS JOIN LATERAL (SELECT DISTINCT unnest(ARRAY['all', c.share]) AS share) s
GROUP BY now.uid, now.starts_at, now.ends_at, s.share

-- Reserves the worst cases of calls that have begun.
-- name: reserve_open
WITH {_now}, open AS MATERIALIZED (
    SELECT now.*, c.id, quota_share(i) AS share, coalesce(c.worst_tokens, c.estimated_tokens) AS tokens,
        coalesce(c.worst_cost_usd, c.estimated_cost_usd) AS usd
    FROM now JOIN investigation i ON i.namespace = now.namespace AND i.state = 'running'
    JOIN stage s ON s.investigation = i.id JOIN execution e ON e.stage = s.id
    JOIN llm_interaction c ON c.execution = e.id AND c.state = 'started'
    UNION ALL
    SELECT now.*, c.id, 'replays', c.worst_tokens, coalesce(c.worst_cost_usd, 0)
    FROM now JOIN judge_spending c ON c.namespace = now.namespace AND c.state = 'started'
), usage AS (
    INSERT INTO quota_usage AS u (quota, starts_at, share, ends_at, reserved_usd, reserved_tokens)
    SELECT o.uid, o.starts_at, s.share, o.ends_at, sum(o.usd), sum(o.tokens)
    FROM open o CROSS JOIN LATERAL (SELECT DISTINCT unnest(ARRAY['all', o.share]) AS share) s
    GROUP BY o.uid, o.starts_at, o.ends_at, s.share
    ON CONFLICT (quota, starts_at, share) DO UPDATE SET
        reserved_usd = u.reserved_usd + excluded.reserved_usd,
        reserved_tokens = u.reserved_tokens + excluded.reserved_tokens
)
INSERT INTO quota_reservation (call, quota, starts_at, share, cost_usd, tokens)
SELECT id, uid, starts_at, share, usd, tokens FROM open

-- name: settle_ended
SELECT quota_settle(
    c.id, i.namespace, quota_share(i), coalesce(c.input_tokens + c.output_tokens, c.estimated_tokens),
    coalesce(c.cost_usd, c.estimated_cost_usd), true
)
FROM (SELECT DISTINCT call FROM quota_reservation) r JOIN llm_interaction c ON c.id = r.call AND c.state <> 'started'
JOIN execution e ON e.id = c.execution JOIN stage s ON s.id = e.stage JOIN investigation i ON i.id = s.investigation
UNION ALL
SELECT quota_settle(c.id, c.namespace, 'replays', judge_tokens(c), judge_cost(c), true)
FROM (SELECT DISTINCT call FROM quota_reservation) r JOIN judge_spending c ON c.id = r.call AND c.state <> 'started'

-- name: delete
WITH gone AS (
    DELETE FROM quota WHERE uid = :uid RETURNING namespace
)
UPDATE investigation i SET held_until = NULL FROM gone
WHERE i.namespace = gone.namespace AND i.state = 'pending' AND i.held_until IS NOT NULL

-- name: published
SELECT uid, namespace, name FROM quota

-- Usage of the current period of each of the quotas, by kind of work; periods that ended a year ago are deleted.
-- name: usage
WITH old AS (
    DELETE FROM quota_usage WHERE quota = ANY(:uids::text[]) AND ends_at < now() - interval '400 days'
)
SELECT q.uid, q.generation,
    p.starts_at AT TIME ZONE 'UTC' AS starts_at,
    (p.starts_at + ('1 ' || q.period)::interval) AT TIME ZONE 'UTC' AS ends_at,
    coalesce(u.spent_usd, 0) AS spent_usd, coalesce(u.spent_tokens, 0) AS spent_tokens,
    coalesce(u.reserved_usd, 0) AS reserved_usd, coalesce(u.reserved_tokens, 0) AS reserved_tokens,
    coalesce(u.investigations, 0) AS investigations, coalesce(u.refusals, 0) AS refusals,
    CASE
        WHEN u.investigations >= q.investigations THEN 'investigations'
        WHEN u.spent_usd + u.reserved_usd + coalesce(u.refused_usd, 0) > q.cost_usd
            OR u.spent_usd + u.reserved_usd >= q.cost_usd THEN 'dollars'
        WHEN u.spent_tokens + u.reserved_tokens + coalesce(u.refused_tokens, 1) > q.tokens THEN 'tokens'
    END AS exceeded
FROM quota q CROSS JOIN LATERAL (SELECT date_trunc(q.period, clock_timestamp() AT TIME ZONE 'UTC') AS starts_at) p
LEFT JOIN quota_usage u ON u.quota = q.uid AND u.starts_at = p.starts_at AT TIME ZONE 'UTC' AND u.share = :share
WHERE q.uid = ANY(:uids::text[])

-- Notes that a call did not fit.
-- name: refused
UPDATE quota_usage SET
    refusals = refusals + 1,
    refused_tokens = CASE WHEN :what = 'tokens' THEN least(refused_tokens, :need::bigint) ELSE refused_tokens END,
    refused_usd = CASE WHEN :what = 'dollars' THEN least(refused_usd, :need::numeric) ELSE refused_usd END
WHERE quota = :uid AND starts_at = :starts_at AND share = :share

-- Holds pending runs of a namespace back: they are looked at again after :seconds, or when the period ends.
-- name: hold
UPDATE investigation i SET
    held_for = h.sentence, held_until = least(h.ends_at, clock_timestamp() + :seconds * interval '1 second'),
    revision = i.revision + CASE WHEN i.held_for IS DISTINCT FROM h.sentence THEN 1 ELSE 0 END
FROM unnest(:ids::uuid[], :sentences::text[], :ends::timestamptz[]) AS h (id, sentence, ends_at)
WHERE i.id = h.id AND i.state = 'pending'
RETURNING i.id

-- name: triage
UPDATE investigation i SET triage_for = t.sentence
FROM unnest(:ids::uuid[], :sentences::text[]) AS t (id, sentence) WHERE i.id = t.id
