-- Writes, reads and deletes changes of the status of conditions of configuration objects.

-- The last change of each condition of objects.
-- name: heads
SELECT DISTINCT ON (uid, type) uid, namespace_uid, type, status, at FROM condition_transition
WHERE uid = ANY(:uids::text[]) ORDER BY uid, type, at DESC, id DESC

-- name: lock
SELECT pg_advisory_xact_lock(:key)

-- A change is identified by object, type, time and status. That a condition is missed has the time at which a controller
-- saw it, so it is written unless it is the last that is known.
-- name: write
INSERT INTO condition_transition (uid, namespace_uid, namespace, kind, name, type, at, status, was, reason, message,
    address, omitted)
SELECT n.uid, n.namespace_uid, n.namespace, n.kind, n.name, n.type, n.at, n.status, n.was, n.reason, n.message,
    n.address, n.omitted
FROM unnest(:uids::text[], :namespace_uids::text[], :namespaces::text[], :kinds::text[], :names::text[], :types::text[],
    :ats::timestamptz[], :statuses::text[], :befores::text[], :reasons::text[], :messages::text[], :addresses::text[],
    :omitted::integer[]) WITH ORDINALITY
    AS n (uid, namespace_uid, namespace, kind, name, type, at, status, was, reason, message, address, omitted, place)
WHERE n.status <> 'Absent' OR coalesce((
    SELECT t.status FROM condition_transition t WHERE t.uid = n.uid AND t.type = n.type
    ORDER BY t.at DESC, t.id DESC LIMIT 1
), '') <> 'Absent'
ORDER BY n.place
ON CONFLICT (uid, type, at, status) DO NOTHING
RETURNING uid

-- name: trim
DELETE FROM condition_transition WHERE id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER (PARTITION BY uid, type ORDER BY at DESC, id DESC) AS place
        FROM condition_transition WHERE uid = ANY(:uids::text[])
    ) placed WHERE place > :kept
)

-- name: _columns
id, uid, namespace_uid, namespace, kind, name, type, at, status, was, reason, message, address, omitted

-- A page of the changes of some kinds in the namespaces with these uids (null: all), the latest first.
-- name: page
SELECT {_columns} FROM condition_transition
WHERE (:namespace_uids::text[] IS NULL OR namespace_uid = ANY(:namespace_uids)) AND kind = ANY(:kinds::text[])
    AND (:name::text IS NULL OR name = :name)
    AND (:before::timestamptz IS NULL OR (at, id) < (:before, :before_id::bigint))
ORDER BY at DESC, id DESC LIMIT :limit

-- The changes of objects since a time, and the last one before it of each condition; the oldest first.
-- name: of_objects
SELECT {_columns} FROM condition_transition WHERE uid = ANY(:uids::text[]) AND at >= :since
UNION ALL
SELECT * FROM (
    SELECT DISTINCT ON (uid, type) {_columns} FROM condition_transition
    WHERE uid = ANY(:uids) AND at < :since ORDER BY uid, type, at DESC, id DESC
) before
ORDER BY at, id

-- name: survey
SELECT namespace, count(*) AS transitions FROM condition_transition
WHERE at < now() - :seconds::float8 * interval '1 second'
    AND (cardinality(:namespaces::text[]) = 0 OR namespace = ANY(:namespaces::text[]))
GROUP BY namespace ORDER BY namespace

-- name: purge
WITH gone AS (
    DELETE FROM condition_transition WHERE id IN (
        SELECT id FROM condition_transition
        WHERE at < now() - :seconds::float8 * interval '1 second'
            AND (cardinality(:namespaces::text[]) = 0 OR namespace = ANY(:namespaces::text[]))
        ORDER BY at, id LIMIT :rows
    ) RETURNING namespace
)
SELECT namespace, count(*) AS transitions FROM gone GROUP BY namespace ORDER BY namespace
