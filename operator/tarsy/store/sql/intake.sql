-- What becomes of notifications, and what is told of it.

-- Whoever takes a notification of the same route waits here: what is new, what is a storm, is decided one by one.
-- name: lock
SELECT pg_advisory_xact_lock(hashtextextended($1, 7261979011))

-- The same body again, soon: its sender did not hear the answer.
-- name: resend
UPDATE notification SET resends = resends + 1
WHERE id = (
    SELECT id FROM notification
    WHERE digest = $1 AND route = $2 AND sender = $3 AND received_at > now() - make_interval(secs => $4)
    ORDER BY received_at DESC LIMIT 1
)
RETURNING fate, reason, incident

-- name: write
INSERT INTO notification (source, route, sender, digest, size, fate, reason, incident)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)

-- name: matched
INSERT INTO intake_route AS r (uid, namespace, name, matched, last_matched) VALUES ($1, $2, $3, 1, now())
ON CONFLICT (uid) DO UPDATE SET matched = r.matched + 1, last_matched = now()

-- The incident that what fires since $2 (the earliest of it) is of: everything of one group that began before the latest
-- beginning that was seen of it. Without times ($2 is null) one that is not resolved and was heard of within $3 seconds.
-- name: same
SELECT i.id FROM incident i
WHERE i.group_hash = $1 AND CASE
    WHEN $2::timestamptz IS NULL
    THEN i.resolved_at IS NULL AND i.last_received > now() - make_interval(secs => $3)
    ELSE i.last_start >= $2
END
ORDER BY i.first_start <= $2 DESC NULLS LAST, i.opened_at DESC LIMIT 1

-- What fires no more was of the latest incident that had begun by then ($2; null: of the latest).
-- name: ended
SELECT i.id FROM incident i
WHERE i.group_hash = $1 AND ($2::timestamptz IS NULL OR i.first_start <= $2)
ORDER BY i.opened_at DESC LIMIT 1

-- name: repeat
UPDATE incident SET
    repeats = repeats + 1, last_received = now(), resolved_at = NULL, revision = revision + 1,
    first_start = least(first_start, coalesce($2, first_start)), last_start = greatest(last_start, coalesce($3, last_start))
WHERE id = $1

-- name: resolve
UPDATE incident SET resolved_at = coalesce(resolved_at, now()), last_received = now(), revision = revision + 1
WHERE id = $1

-- How many investigations wait: those of namespace $1, and all, of which no namespace counts more than $2.
-- name: waiting
WITH RECURSIVE space AS (
    (SELECT namespace FROM investigation WHERE state IN ('pending', 'running') ORDER BY namespace LIMIT 1)
    UNION ALL
    SELECT next.* FROM space CROSS JOIN LATERAL (
        SELECT i.namespace FROM investigation i
        WHERE i.state IN ('pending', 'running') AND i.namespace > space.namespace ORDER BY i.namespace LIMIT 1
    ) next
), waiting AS (
    SELECT space.namespace, pending.number FROM space CROSS JOIN LATERAL (
        SELECT count(*) AS number FROM (
            SELECT FROM investigation i
            WHERE i.namespace = space.namespace AND i.state IN ('pending', 'running') AND i.state = 'pending'
                AND i.parent IS NULL
            LIMIT $2 + 1
        ) p
    ) pending
    UNION ALL
    SELECT namespace, count(*) FROM incident WHERE manifest IS NOT NULL GROUP BY namespace
), summed AS (
    SELECT namespace, sum(number) AS number FROM waiting GROUP BY namespace
)
SELECT coalesce(sum(number) FILTER (WHERE namespace = $1), 0)::bigint AS here,
    coalesce(sum(least(number, $2)), 0)::bigint AS everywhere
FROM summed

-- name: recent
SELECT count(*) FROM incident WHERE route = $1 AND opened_at > now() - make_interval(secs => $2)

-- name: storm
SELECT id FROM incident WHERE route = $1 AND storm AND last_received > now() - make_interval(secs => $2)
ORDER BY opened_at DESC LIMIT 1

-- name: fold
WITH storm AS (
    UPDATE incident SET folded = folded + 1, last_received = now(), revision = revision + 1
    WHERE id = $2 RETURNING id, namespace, alert
)
INSERT INTO incident (id, route, group_hash, namespace, alert, parent, opened_at, first_start, last_start, last_received)
SELECT $1, $3, $4, namespace, alert, id, now(), coalesce($5, now()), coalesce($6, $5, now()), now() FROM storm

-- name: now
SELECT now()

-- name: open
INSERT INTO incident (id, route, group_hash, namespace, alert, manifest, storm, opened_at, first_start, last_start,
    last_received, incident_key)
VALUES ($1, $2, $3, $4, $5, $6, $7, now(), coalesce($8, now()), coalesce($9, $8, now()), now(), $10)

-- name: keep_body
INSERT INTO alert_body (namespace, digest, content) VALUES ($1, $2, $3)
ON CONFLICT (namespace, digest) DO UPDATE SET kept_at = now()

-- name: body
SELECT content FROM alert_body WHERE namespace = $1 AND digest = $2

-- What an Alert with an incidentKey was folded into before; $1: its place.
-- name: followed
SELECT i.id, i.alert, i.alert_uid, true AS recent, false AS resolved
FROM incident f JOIN incident i ON i.id = f.parent WHERE f.id = $1

-- The incident of a key, and whether it was heard of within $3 seconds.
-- name: leader
SELECT id, alert, alert_uid, last_received > now() - make_interval(secs => $3) AS recent,
    resolved_at IS NOT NULL AS resolved
FROM incident WHERE namespace = $1 AND incident_key = $2 AND parent IS NULL
ORDER BY opened_at DESC, id LIMIT 1

-- The Alert is there already, and leads.
-- name: lead
INSERT INTO incident (id, route, group_hash, namespace, alert, alert_uid, opened_at, first_start, last_start,
    last_received, incident_key)
VALUES ($1, '', $2, $3, $4, $5, clock_timestamp(), now(), now(), now(), $6)

-- Counted once, however often it is said.
-- name: follow
WITH new AS (
    INSERT INTO incident (id, route, group_hash, namespace, alert, parent, opened_at, first_start, last_start,
        last_received)
    SELECT $2, i.route, i.group_hash, $3, $4, i.id, now(), now(), now(), now() FROM incident i WHERE i.id = $1
    ON CONFLICT (id) DO NOTHING
    RETURNING parent
)
UPDATE incident SET repeats = repeats + 1, last_received = now(), revision = revision + 1
WHERE id IN (SELECT parent FROM new)

-- The Alert that stands for an incident, and what is still owed of it.
-- name: alert
SELECT a.id, a.namespace, a.alert, a.manifest
FROM incident i JOIN incident a ON a.id = coalesce(i.parent, i.id) WHERE i.id = $1

-- name: made
UPDATE incident SET alert_uid = $2, manifest = NULL WHERE id = $1

-- The Alert can never be: what was to become one is rejected, with all that came after; the next one begins anew.
-- name: refuse
WITH gone AS (
    DELETE FROM incident WHERE (id = $1 OR parent = $1)
        AND EXISTS (SELECT FROM incident WHERE id = $1 AND manifest IS NOT NULL)
    RETURNING id
)
UPDATE notification SET fate = 'rejected', reason = $2, incident = NULL WHERE incident IN (SELECT id FROM gone)

-- name: owed
SELECT id, namespace, alert, manifest FROM incident
WHERE manifest IS NOT NULL AND opened_at < now() - make_interval(secs => $1) ORDER BY opened_at LIMIT $2

-- name: unpublished
SELECT id, namespace, alert, alert_uid, repeats, folded, last_received, resolved_at, revision FROM incident
WHERE revision > published AND parent IS NULL AND alert_uid IS NOT NULL ORDER BY opened_at LIMIT $1

-- name: published
UPDATE incident SET published = greatest(published, $2) WHERE id = $1

-- name: changed_routes
SELECT uid, namespace, name FROM intake_route WHERE matched > published LIMIT $1

-- name: route
SELECT matched, last_matched FROM intake_route WHERE uid = $1

-- name: route_published
UPDATE intake_route SET published = greatest(published, $2) WHERE uid = $1

-- A row balances where the Alert that it led to is there. $1: seconds back; null: all.
-- name: ledger
SELECT n.fate, n.reason, n.fate IN ('investigated', 'folded') AND a.alert_uid IS NULL AS owed,
    count(*) AS notifications, sum(n.resends)::bigint AS resends
FROM notification n LEFT JOIN incident i ON i.id = n.incident LEFT JOIN incident a ON a.id = coalesce(i.parent, i.id)
WHERE $1::float8 IS NULL OR n.received_at >= now() - make_interval(secs => $1)
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3

-- Incidents that were opened more than once, which must not be.
-- name: twice
SELECT count(*) FROM (
    SELECT FROM notification n WHERE n.fate = 'investigated'
        AND ($1::float8 IS NULL OR n.received_at >= now() - make_interval(secs => $1))
    GROUP BY n.incident HAVING count(*) > 1
) t

-- name: purge_notifications
DELETE FROM notification WHERE id IN (
    SELECT id FROM notification WHERE received_at < now() - make_interval(secs => $1) ORDER BY received_at LIMIT $2
)

-- Those that stand for others go after them.
-- name: purge_incidents
DELETE FROM incident WHERE id IN (
    SELECT i.id FROM incident i WHERE i.last_received < now() - make_interval(secs => $1) AND i.manifest IS NULL
        AND NOT EXISTS (SELECT FROM notification n WHERE n.incident = i.id)
        AND NOT EXISTS (SELECT FROM incident c WHERE c.parent = i.id)
    LIMIT $2
)

-- name: purge_bodies
DELETE FROM alert_body WHERE (namespace, digest) IN (
    SELECT namespace, digest FROM alert_body WHERE kept_at < now() - make_interval(secs => $1) LIMIT $2
)
