-- Admits model calls under the limits of their providers. Taking a slot locks the row of the provider's limits, so that
-- counting and taking are one step. A call is alive while the lease of its run's attempt holds; one of a judge belongs to no
-- run, and has a lease of :lease_seconds of its own.

-- name: limits
SELECT generation, max_concurrent, requests_per_minute, tokens_per_minute FROM provider_limit WHERE provider = :provider
FOR UPDATE

-- The newest generation that was published counts.
-- name: publish
INSERT INTO provider_limit AS known (provider, generation, max_concurrent, requests_per_minute, tokens_per_minute)
VALUES (:provider, :generation, :max_concurrent, :requests_per_minute, :tokens_per_minute)
ON CONFLICT (provider) DO UPDATE SET
    generation = excluded.generation, max_concurrent = excluded.max_concurrent,
    requests_per_minute = excluded.requests_per_minute, tokens_per_minute = excluded.tokens_per_minute
WHERE known.generation < excluded.generation

-- The load of a provider at this moment, without call :ticket itself. Calls that no longer count are deleted; rows that
-- another transaction is closing are left for the next time.
-- name: load
WITH moment AS MATERIALIZED (
    SELECT clock_timestamp() AS now, clock_timestamp() - interval '1 minute' AS minute
), calls AS MATERIALIZED (
    SELECT c.*, w.id IS NOT NULL OR coalesce(c.expires_at > moment.now, false) AS alive FROM moment, provider_call c
    LEFT JOIN lease l ON l.investigation = c.investigation AND l.attempt = c.attempt
    LEFT JOIN worker w ON w.id = l.worker AND w.expires_at > clock_timestamp()
    WHERE c.provider = :provider
), counted AS (
    SELECT c.*, c.admitted_at > moment.minute AS recent, c.finished_at > moment.minute AS just_over,
        c.admitted_at IS NULL AND c.alive AS waiting
    FROM calls c, moment WHERE c.id <> :ticket
), gone AS (
    DELETE FROM provider_call WHERE id IN (
        SELECT p.id FROM provider_call p JOIN counted c ON c.id = p.id
        WHERE c.recent IS NOT TRUE AND c.just_over IS NOT TRUE AND (c.finished_at IS NOT NULL OR NOT c.alive)
        FOR UPDATE OF p SKIP LOCKED
    )
)
SELECT
    :lease_seconds::double precision IS NOT NULL OR EXISTS (
        SELECT FROM lease l JOIN worker w ON w.id = l.worker AND w.expires_at > clock_timestamp()
        WHERE l.investigation = :investigation AND l.attempt = :attempt
    ) AS held,
    count(*) FILTER (WHERE alive AND admitted_at IS NOT NULL AND finished_at IS NULL) AS running,
    count(*) FILTER (WHERE recent) AS requests,
    (coalesce(sum(tokens) FILTER (WHERE recent), 0) + coalesce(sum(excess) FILTER (WHERE just_over), 0))::bigint AS tokens,
    coalesce(bool_or(waiting AND place < coalesce((SELECT place FROM calls WHERE id = :ticket), place + 1)), false)
        AS behind,
    extract(epoch FROM least(
        min(admitted_at) FILTER (WHERE recent), min(finished_at) FILTER (WHERE just_over AND excess > 0)
    ) - (SELECT minute FROM moment))::double precision AS seconds,
    (array_agg(id ORDER BY place) FILTER (WHERE waiting))[1] AS next
FROM counted

-- name: wait
INSERT INTO provider_call AS c (id, provider, investigation, attempt, tokens, expires_at)
VALUES (:ticket, :provider, :investigation, :attempt, :tokens,
    clock_timestamp() + make_interval(secs => :lease_seconds))
ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at WHERE c.expires_at IS NOT NULL

-- name: admit
INSERT INTO provider_call AS c (id, provider, investigation, attempt, tokens, admitted_at, expires_at)
VALUES (:ticket, :provider, :investigation, :attempt, :tokens, clock_timestamp(),
    clock_timestamp() + make_interval(secs => :lease_seconds))
ON CONFLICT (id) DO UPDATE SET
    admitted_at = coalesce(c.admitted_at, excluded.admitted_at), expires_at = excluded.expires_at

-- Ends calls that are over (:used are the tokens that each used, NULL where unknown) or that no longer wait. Returns
-- the next waiting call of each provider.
-- name: release
WITH ended AS (
    SELECT * FROM unnest(:tickets::uuid[], :used::bigint[]) AS e (id, used)
), over AS (
    UPDATE provider_call c SET
        finished_at = clock_timestamp(), tokens = least(c.tokens, coalesce(e.used, c.tokens)),
        excess = greatest(coalesce(e.used, 0) - c.tokens, 0)
    FROM ended e WHERE c.id = e.id AND c.admitted_at IS NOT NULL AND c.finished_at IS NULL
    RETURNING c.provider
), given_up AS (
    DELETE FROM provider_call c USING ended e WHERE c.id = e.id AND c.admitted_at IS NULL RETURNING c.provider
), freed AS (
    SELECT provider FROM over UNION SELECT provider FROM given_up
)
SELECT DISTINCT ON (c.provider) c.id
FROM freed f JOIN provider_call c ON c.provider = f.provider AND c.admitted_at IS NULL
LEFT JOIN lease l ON l.investigation = c.investigation AND l.attempt = c.attempt LEFT JOIN worker w ON w.id = l.worker
WHERE c.id <> ALL(:tickets) AND (w.id IS NOT NULL OR c.expires_at > clock_timestamp()) ORDER BY c.provider, c.place

-- name: first_waiting
SELECT id FROM provider_call WHERE provider = :provider AND admitted_at IS NULL ORDER BY place LIMIT 1
