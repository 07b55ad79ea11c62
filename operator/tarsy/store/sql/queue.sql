-- Reads the queue for people: the workers, and the runs that none of them has.

-- Registered workers, those whose lease has ended too, until a claim or the sweep removes them.
-- name: workers
SELECT w.id, w.host, w.started_at, w.expires_at, w.expires_at > now() AS alive, w.schema_version, w.draining, w.beat_at,
    w.places, w.questions, w.global_limit, w.namespace_limit, w.version,
    count(i.id) FILTER (WHERE i.parent IS NULL) AS runs, count(i.id) FILTER (WHERE i.parent IS NOT NULL) AS answers
FROM worker w LEFT JOIN lease l ON l.worker = w.id LEFT JOIN investigation i ON i.id = l.investigation
GROUP BY w.id ORDER BY w.expires_at <= now(), w.host, w.id LIMIT :limit

-- Runs that no live worker has, those that wait longest first, of the namespaces with these uids (null: all).
-- name: waiting
WITH busy AS (
    SELECT i.namespace, i.chain_namespace, i.chain, count(*) AS runs
    FROM lease l JOIN worker w ON w.id = l.worker AND w.expires_at > now() JOIN investigation i ON i.id = l.investigation
    WHERE i.parent IS NULL
    GROUP BY i.namespace, i.chain_namespace, i.chain
), waits AS (
    SELECT i.*, l.worker, w.expires_at, asleep.so AS asleep,
        CASE
            WHEN asleep.so THEN i.parked_at
            WHEN i.parked_at IS NOT NULL THEN i.wake_at
            WHEN i.state = 'running' THEN coalesce(w.expires_at, i.started_at)
            ELSE i.accepted_at
        END AS since
    FROM investigation i LEFT JOIN lease l ON l.investigation = i.id LEFT JOIN worker w ON w.id = l.worker,
    LATERAL (SELECT i.parked_at IS NOT NULL AND (i.wake_at IS NULL OR i.wake_at > now()) AS so) asleep
    WHERE i.state IN ('pending', 'running') AND (w.id IS NULL OR w.expires_at <= now())
        AND (:namespace_uids::text[] IS NULL OR i.namespace_uid = ANY(:namespace_uids))
    ORDER BY since, i.id LIMIT :limit
)
SELECT i.id, i.namespace, i.name, about.name AS parent, i.alert_type, i.chain_namespace, i.chain, i.replay, i.accepted_at,
    i.since, CASE WHEN i.asleep THEN i.parked_for END AS parked_for,
    CASE WHEN i.asleep THEN i.parked_note WHEN i.held_until > now() THEN i.held_for END AS note,
    CASE WHEN i.asleep THEN i.wake_at END AS until,
    i.state = 'running' AND i.parked_at IS NULL AS lost,
    i.parent IS NOT NULL AND EXISTS (
        SELECT FROM investigation before
        WHERE before.parent = i.parent AND before.place < i.place AND before.state IN ('pending', 'running')
    ) AS behind,
    EXISTS (SELECT FROM worker v WHERE v.expires_at > now() AND v.schema_version >= i.reader) AS readable,
    i.namespace_limit, i.chain_limit,
    coalesce((SELECT sum(runs) FROM busy WHERE busy.namespace = i.namespace), 0)::integer AS in_namespace,
    coalesce((
        SELECT sum(runs) FROM busy WHERE busy.chain_namespace = i.chain_namespace AND busy.chain = i.chain
    ), 0)::integer AS of_chain
FROM waits i LEFT JOIN investigation about ON about.id = i.parent
ORDER BY i.since, i.id
