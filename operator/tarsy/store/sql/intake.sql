-- Writes the fate of notifications, and the incidents that they belong to.

-- Serializes notifications of one route, so that new incidents and storms are decided one by one.
-- name: lock
SELECT pg_advisory_xact_lock(hashtextextended(:key, 7261979011))

-- The same body again within :seconds: the sender did not receive the response.
-- name: resend
UPDATE notification SET resends = resends + 1
WHERE id = (
    SELECT id FROM notification
    WHERE digest = :digest AND route = :route AND sender = :sender
        AND received_at > now() - make_interval(secs => :seconds)
    ORDER BY received_at DESC LIMIT 1
)
RETURNING fate, reason, incident

-- name: write
INSERT INTO notification (source, route, sender, digest, size, fate, reason, incident)
VALUES (:source, :route, :sender, :digest, :size, :fate, :reason, :incident)

-- name: matched
INSERT INTO intake_route AS r (uid, namespace, name, matched, last_matched) VALUES (:uid, :namespace, :name, 1, now())
ON CONFLICT (uid) DO UPDATE SET matched = r.matched + 1, last_matched = now()

-- The incident of a group whose alerts fire since :first (the earliest of them): the one whose latest beginning is no
-- earlier. If it is resolved, alerts that fire since a time after the end, and before its first beginning, are none of it:
-- its sender's clock ran ahead, and was put right. Without times (:first is null): one that is not resolved and had a
-- notification within :seconds.
-- name: same
SELECT i.id FROM incident i
WHERE i.group_hash = :group AND CASE
    WHEN :first::timestamptz IS NULL
    THEN i.resolved_at IS NULL AND i.last_received > now() - make_interval(secs => :seconds)
    ELSE i.last_start >= :first AND (i.resolved_at IS NULL OR :first <= i.resolved_at OR :first >= i.first_start)
END
ORDER BY i.first_start <= :first DESC NULLS LAST, i.opened_at DESC LIMIT 1

-- The incident that a resolved notification ends: the latest that had begun by :last (null: the latest).
-- name: ended
SELECT i.id FROM incident i
WHERE i.group_hash = :group AND (:last::timestamptz IS NULL OR i.first_start <= :last)
ORDER BY i.opened_at DESC LIMIT 1

-- name: repeat
UPDATE incident SET
    repeats = repeats + 1, last_received = now(), resolved_at = NULL, revision = revision + 1,
    first_start = least(first_start, coalesce(:first, first_start)),
    last_start = greatest(last_start, coalesce(:last, last_start))
WHERE id = :id

-- name: resolve
UPDATE incident SET resolved_at = coalesce(resolved_at, now()), last_received = now(), revision = revision + 1
WHERE id = :id

-- Keeps a resolved notification whose firing (its latest start is :last) is not known yet.
-- name: keep_early
INSERT INTO early_resolution AS e (group_hash, last_start)
SELECT :group, :last WHERE :last::timestamptz IS NOT NULL
    AND NOT EXISTS (SELECT FROM incident i WHERE i.group_hash = :group AND i.last_start >= :last)
ON CONFLICT (group_hash) DO UPDATE SET last_start = greatest(e.last_start, excluded.last_start), received_at = now()

-- Whether the end of what fires since :first came within the last :seconds already.
-- name: early
DELETE FROM early_resolution
WHERE group_hash = :group AND last_start >= :first::timestamptz AND received_at > now() - make_interval(secs => :seconds)
RETURNING true

-- Waiting investigations: those of namespace :namespace, and all, where no namespace counts for more than :limit.
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
            LIMIT :limit + 1
        ) p
    ) pending
    UNION ALL
    SELECT namespace, count(*) FROM incident WHERE manifest IS NOT NULL GROUP BY namespace
), summed AS (
    SELECT namespace, sum(number) AS number FROM waiting GROUP BY namespace
)
SELECT coalesce(sum(number) FILTER (WHERE namespace = :namespace), 0)::bigint AS here,
    coalesce(sum(least(number, :limit)), 0)::bigint AS everywhere
FROM summed

-- name: recent
SELECT count(*) FROM incident WHERE route = :route AND opened_at > now() - make_interval(secs => :seconds)

-- name: storm
SELECT id FROM incident WHERE route = :route AND storm AND last_received > now() - make_interval(secs => :seconds)
ORDER BY opened_at DESC LIMIT 1

-- name: fold
WITH storm AS (
    UPDATE incident SET folded = folded + 1, last_received = now(), revision = revision + 1
    WHERE id = :storm RETURNING id, namespace, alert
)
INSERT INTO incident (id, route, group_hash, namespace, alert, parent, opened_at, first_start, last_start, last_received)
SELECT :id, :route, :group, namespace, alert, id, now(), coalesce(:first, now()), coalesce(:last, :first, now()), now()
FROM storm

-- name: now
SELECT now()

-- name: open
INSERT INTO incident (id, route, group_hash, namespace, alert, manifest, storm, opened_at, first_start, last_start,
    last_received, incident_key)
VALUES (:id, :route, :group, :namespace, :alert, :manifest, :storm, now(), coalesce(:first, now()),
    coalesce(:last, :first, now()), now(), :incident_key)

-- name: keep_body
INSERT INTO alert_body (namespace, digest, content) VALUES (:namespace, :digest, :content)
ON CONFLICT (namespace, digest) DO UPDATE SET kept_at = now()

-- name: body
SELECT content FROM alert_body WHERE namespace = :namespace AND digest = :digest

-- The incident that an Alert with an incidentKey was folded into; :id is the row of the folded Alert.
-- name: followed
SELECT i.id, i.alert, i.alert_uid, true AS recent, false AS resolved
FROM incident f JOIN incident i ON i.id = f.parent WHERE f.id = :id

-- The incident of a key, and whether it had a notification within :seconds.
-- name: leader
SELECT id, alert, alert_uid, last_received > now() - make_interval(secs => :seconds) AS recent,
    resolved_at IS NOT NULL AS resolved
FROM incident WHERE namespace = :namespace AND incident_key = :incident_key AND parent IS NULL
ORDER BY opened_at DESC, id LIMIT 1

-- Opens an incident whose Alert exists already.
-- name: lead
INSERT INTO incident (id, route, group_hash, namespace, alert, alert_uid, opened_at, first_start, last_start,
    last_received, incident_key)
VALUES (:id, '', :group, :namespace, :alert, :alert_uid, clock_timestamp(), now(), now(), now(), :incident_key)

-- Counts a folded Alert once.
-- name: follow
WITH new AS (
    INSERT INTO incident (id, route, group_hash, namespace, alert, parent, opened_at, first_start, last_start,
        last_received)
    SELECT :id, i.route, i.group_hash, :namespace, :alert, i.id, now(), now(), now(), now()
    FROM incident i WHERE i.id = :incident
    ON CONFLICT (id) DO NOTHING
    RETURNING parent
)
UPDATE incident SET repeats = repeats + 1, last_received = now(), revision = revision + 1
WHERE id IN (SELECT parent FROM new)

-- The Alert of an incident, with its manifest while it is owed.
-- name: alert
SELECT a.id, a.namespace, a.alert, a.manifest
FROM incident i JOIN incident a ON a.id = coalesce(i.parent, i.id) WHERE i.id = :id

-- name: made
UPDATE incident SET alert_uid = :alert_uid, manifest = NULL WHERE id = :id

-- The Alert can never be created: rejects the notifications of its incident and of incidents folded into it. The next
-- notification opens a new incident.
-- name: refuse
WITH gone AS (
    DELETE FROM incident WHERE (id = :id OR parent = :id)
        AND EXISTS (SELECT FROM incident WHERE id = :id AND manifest IS NOT NULL)
    RETURNING id
)
UPDATE notification SET fate = 'rejected', reason = :reason, incident = NULL WHERE incident IN (SELECT id FROM gone)

-- name: owed
SELECT id, namespace, alert, manifest FROM incident
WHERE manifest IS NOT NULL AND opened_at < now() - make_interval(secs => :seconds) ORDER BY opened_at LIMIT :limit

-- name: unpublished
SELECT id, namespace, alert, alert_uid, repeats, folded, last_received, resolved_at, revision FROM incident
WHERE revision > published AND parent IS NULL AND alert_uid IS NOT NULL ORDER BY opened_at LIMIT :limit

-- name: published
UPDATE incident SET published = greatest(published, :revision) WHERE id = :id

-- name: changed_routes
SELECT uid, namespace, name FROM intake_route WHERE matched > published LIMIT :limit

-- name: route
SELECT matched, last_matched FROM intake_route WHERE uid = :uid

-- name: route_published
UPDATE intake_route SET published = greatest(published, :matched) WHERE uid = :uid

-- A row balances where the Alert that it led to exists. Only the last :seconds; null: all.
-- name: ledger
SELECT n.fate, n.reason, n.fate IN ('investigated', 'folded') AND a.alert_uid IS NULL AS owed,
    count(*) AS notifications, sum(n.resends)::bigint AS resends
FROM notification n LEFT JOIN incident i ON i.id = n.incident LEFT JOIN incident a ON a.id = coalesce(i.parent, i.id)
WHERE :seconds::float8 IS NULL OR n.received_at >= now() - make_interval(secs => :seconds)
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3

-- Incidents that were opened more than once; the number must be 0.
-- name: twice
SELECT count(*) FROM (
    SELECT FROM notification n WHERE n.fate = 'investigated'
        AND (:seconds::float8 IS NULL OR n.received_at >= now() - make_interval(secs => :seconds))
    GROUP BY n.incident HAVING count(*) > 1
) t

-- name: purge_notifications
DELETE FROM notification WHERE id IN (
    SELECT id FROM notification WHERE received_at < now() - make_interval(secs => :seconds)
    ORDER BY received_at LIMIT :limit
)

-- Incidents with folded ones are deleted after those.
-- name: purge_incidents
DELETE FROM incident WHERE id IN (
    SELECT i.id FROM incident i WHERE i.last_received < now() - make_interval(secs => :seconds) AND i.manifest IS NULL
        AND NOT EXISTS (SELECT FROM notification n WHERE n.incident = i.id)
        AND NOT EXISTS (SELECT FROM incident c WHERE c.parent = i.id)
    LIMIT :limit
)

-- name: purge_early
DELETE FROM early_resolution WHERE group_hash IN (
    SELECT group_hash FROM early_resolution WHERE received_at < now() - make_interval(secs => :seconds) LIMIT :limit
)

-- name: purge_bodies
DELETE FROM alert_body WHERE (namespace, digest) IN (
    SELECT namespace, digest FROM alert_body WHERE kept_at < now() - make_interval(secs => :seconds) LIMIT :limit
)
