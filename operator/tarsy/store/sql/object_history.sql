-- Writes and reads versions of objects, and the windows in which objects were not watched.

-- name: partitions
SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'object_version'::regclass ORDER BY c.relname

-- name: lock_partitions
SELECT pg_advisory_xact_lock(:key)

-- name: known
SELECT uid, name, digest, key_id FROM object_head WHERE namespace_uid = :namespace_uid AND kind = :kind

-- name: heads
SELECT h.uid, h.namespace_uid, h.namespace, h.kind, h.name, h.seq, h.digest, h.key_id, h.resource_version, h.form, h.changed_at, h.noise,
    h.noise_since, h.seen_at, v.patch AS noise_patch, v.count AS noise_count
FROM object_head h
LEFT JOIN object_version v ON h.noise <> '' AND v.uid = h.uid AND v.seq = h.seq AND v.seen_at = h.seen_at
WHERE h.uid = ANY(:uids::text[]) ORDER BY h.uid FOR UPDATE OF h

-- Objects whose deletion is recorded: a recorder that lags behind another one may still see them.
-- name: ended
SELECT DISTINCT uid FROM object_version WHERE uid = ANY(:uids::text[]) AND action = 'deleted'

-- Two recorders for a few seconds: the second one finds the head of the first, and tries again.
-- name: put_new_head
INSERT INTO object_head (uid, namespace_uid, namespace, kind, name, seq, digest, key_id, resource_version, form,
    changed_at, noise, noise_since, seen_at)
VALUES (:uid, :namespace_uid, :namespace, :kind, :name, :seq, :digest, :key_id, :resource_version, :form,
    :changed_at, :noise, :noise_since, :seen_at)

-- name: put_head
UPDATE object_head SET seq = :seq, digest = :digest, key_id = :key_id, resource_version = :resource_version,
    form = :form, changed_at = :changed_at, noise = :noise, noise_since = :noise_since, seen_at = :seen_at
WHERE uid = :uid

-- name: drop_heads
DELETE FROM object_head WHERE uid = ANY(:uids::text[])

-- name: put_version
INSERT INTO object_version (uid, seq, seen_at, namespace_uid, namespace, kind, name, action, type, changed_at,
    not_before, last_at, count, manager, fields, patch, snapshot, bytes)
VALUES (:uid, :seq, :seen_at, :namespace_uid, :namespace, :kind, :name, :action, :type, :changed_at, :not_before,
    :last_at, 1, :manager, :fields, :patch, :snapshot, :bytes)

-- name: add_to_version
UPDATE object_version SET count = count + 1, last_at = :last_at, fields = :fields, patch = :patch,
    snapshot = coalesce(:snapshot::bytea, snapshot)
WHERE uid = :uid AND seq = :seq AND seen_at = :seen_at

-- name: add_size
INSERT INTO object_history_size AS s (namespace_uid, day, namespace, bytes)
VALUES (:namespace_uid, :day, :namespace, :bytes)
ON CONFLICT (namespace_uid, day) DO UPDATE SET bytes = s.bytes + excluded.bytes

-- name: watch
SELECT kind, since, until, state FROM object_watch WHERE namespace_uid = :namespace_uid AND kind = :kind

-- name: put_watch
INSERT INTO object_watch AS w (namespace_uid, kind, namespace, since, until, state)
VALUES (:namespace_uid, :kind, :namespace, :until, :until, :state)
ON CONFLICT (namespace_uid, kind) DO UPDATE SET state = excluded.state, namespace = excluded.namespace,
    until = CASE WHEN excluded.state = 'Watching' THEN greatest(w.until, excluded.until) ELSE w.until END,
    since = CASE WHEN w.state = 'NotServed' THEN excluded.since ELSE w.since END

-- name: put_unwatched
INSERT INTO object_unwatched AS u (namespace_uid, kind, namespace, since, until, reason)
VALUES (:namespace_uid, :kind, :namespace, :since, :until, :reason)
ON CONFLICT (namespace_uid, kind, since) DO UPDATE SET until = greatest(u.until, excluded.until)

-- The namespace of a run, where its objects have a history.
-- name: namespace_of_run
SELECT i.namespace_uid FROM investigation i
WHERE i.id = :run AND EXISTS (SELECT FROM object_watch w WHERE w.namespace_uid = i.namespace_uid)

-- The changes of a namespace in a window, of :kinds only. A time by the API server's clock may be minutes ahead of the
-- recorder's; changes that are added to a version may come an hour after it.
-- name: changes
SELECT uid, seq, namespace_uid, namespace, kind, name, action, type, changed_at, not_before, last_at, count, manager,
    fields, patch
FROM object_version
WHERE namespace_uid = :namespace_uid AND kind = ANY(:kinds::text[])
    AND seen_at >= :since::timestamptz - interval '65 minutes'
    AND last_at >= :since AND coalesce(not_before, changed_at) <= :until
ORDER BY changed_at DESC, seen_at DESC, uid, seq DESC LIMIT :limit

-- name: unwatched
SELECT kind, since, until, reason FROM object_unwatched
WHERE namespace_uid = :namespace_uid AND kind = ANY(:kinds::text[]) AND until >= :since AND since <= :until
ORDER BY kind, since LIMIT :limit

-- name: watches
SELECT kind, since, until, state FROM object_watch
WHERE namespace_uid = :namespace_uid AND kind = ANY(:kinds::text[]) ORDER BY kind

-- A version with the whole form, at or before :seq, and all versions between them.
-- name: chain
SELECT seq, snapshot, patch FROM object_version
WHERE namespace_uid = :namespace_uid AND kind = ANY(:kinds::text[]) AND uid = :uid AND seq <= :seq AND seq >= (
    SELECT max(seq) FROM object_version WHERE namespace_uid = :namespace_uid AND uid = :uid AND seq <= :seq
        AND (snapshot IS NOT NULL OR action = 'created'))
ORDER BY seq

-- name: sizes
SELECT v.namespace_uid, v.namespace, v.bytes + coalesce(h.bytes, 0) AS bytes, v.oldest
FROM (
    SELECT namespace_uid, max(namespace) AS namespace, sum(bytes)::bigint AS bytes, min(day) AS oldest
    FROM object_history_size GROUP BY namespace_uid
) v LEFT JOIN (
    SELECT namespace_uid, sum(octet_length(form) + :overhead::int)::bigint AS bytes FROM object_head GROUP BY namespace_uid
) h USING (namespace_uid)
ORDER BY v.namespace_uid

-- The oldest versions of a namespace on a day: at most :rows, until :excess bytes are gone.
-- name: evict
WITH old AS (
    SELECT uid, seq, seen_at, bytes, sum(bytes) OVER (ORDER BY seen_at, uid, seq) - bytes AS before
    FROM object_version
    WHERE namespace_uid = :namespace_uid AND seen_at >= :start AND seen_at < :end ORDER BY seen_at, uid, seq LIMIT :rows
), gone AS (
    DELETE FROM object_version v USING old
    WHERE old.before < :excess AND v.uid = old.uid AND v.seq = old.seq AND v.seen_at = old.seen_at
    RETURNING v.bytes
)
SELECT count(*) AS versions, coalesce(sum(bytes), 0)::bigint AS bytes FROM gone

-- name: shrink
UPDATE object_history_size SET bytes = greatest(0, bytes - :bytes) WHERE namespace_uid = :namespace_uid AND day = :day

-- name: drop_size
DELETE FROM object_history_size WHERE namespace_uid = :namespace_uid AND day = :day

-- name: drop_days
DELETE FROM object_history_size WHERE day < :day

-- Versions that are older than :seconds; of :namespaces only (none: all).
-- name: survey
SELECT namespace, count(*) AS versions FROM object_version
WHERE seen_at < now() - make_interval(secs => :seconds)
    AND (cardinality(:namespaces::text[]) = 0 OR namespace = ANY(:namespaces::text[]))
GROUP BY namespace ORDER BY namespace

-- name: purge
WITH old AS (
    SELECT uid, seq, seen_at FROM object_version
    WHERE seen_at < now() - make_interval(secs => :seconds)
        AND (cardinality(:namespaces::text[]) = 0 OR namespace = ANY(:namespaces::text[]))
    ORDER BY seen_at LIMIT :rows
), gone AS (
    DELETE FROM object_version v USING old WHERE v.uid = old.uid AND v.seq = old.seq AND v.seen_at = old.seen_at
    RETURNING v.namespace_uid, v.namespace, (v.seen_at AT TIME ZONE 'UTC')::date AS day, v.bytes
), smaller AS (
    UPDATE object_history_size s SET bytes = greatest(0, s.bytes - g.bytes)
    FROM (SELECT namespace_uid, day, sum(bytes) AS bytes FROM gone GROUP BY namespace_uid, day) g
    WHERE s.namespace_uid = g.namespace_uid AND s.day = g.day
)
SELECT namespace, count(*) AS versions FROM gone GROUP BY namespace

-- What is left of namespaces that have not been watched for :seconds, and at least a day: others still have objects.
-- name: purge_heads
WITH old AS (
    DELETE FROM object_watch
    WHERE until < now() - make_interval(secs => greatest(:seconds, 86400))
        AND (cardinality(:namespaces::text[]) = 0 OR namespace = ANY(:namespaces::text[]))
    RETURNING namespace_uid, kind
)
DELETE FROM object_head h USING old WHERE h.namespace_uid = old.namespace_uid AND h.kind = old.kind

-- name: purge_unwatched
DELETE FROM object_unwatched
WHERE until < now() - make_interval(secs => :seconds)
    AND (cardinality(:namespaces::text[]) = 0 OR namespace = ANY(:namespaces::text[]))
