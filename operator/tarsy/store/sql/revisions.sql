-- Reads and writes the revisions of Chains with spec.promotion.

-- Without their objects, which may be large; the newest first.
-- name: known
SELECT digest, generation, state, reason, eval_run, author FROM chain_revision
WHERE chain_uid = :chain_uid ORDER BY noted_at DESC, digest

-- name: objects
SELECT digest, objects FROM chain_revision WHERE chain_uid = :chain_uid AND state = 'serving'

-- Two active controllers write one after the other: at most one revision serves.
-- name: lock
SELECT pg_advisory_xact_lock(:key, hashtext(:chain_uid))

-- name: retire
UPDATE chain_revision SET state = 'retired' WHERE chain_uid = :chain_uid AND state = 'serving' AND digest <> :digest

-- A revision that comes back, by a revert, is the newest again.
-- name: put
INSERT INTO chain_revision (chain_uid, digest, namespace, name, generation, objects, state, reason, eval_run, author,
    decided_at)
VALUES (:chain_uid, :digest, :namespace, :name, :generation, :objects, :state, :reason, :eval_run, :author,
    CASE WHEN :state <> 'candidate' THEN now() END)
ON CONFLICT (chain_uid, digest) DO UPDATE SET generation = excluded.generation, objects = excluded.objects,
    state = excluded.state, reason = excluded.reason, eval_run = excluded.eval_run, author = excluded.author,
    noted_at = CASE WHEN chain_revision.generation < excluded.generation THEN now() ELSE chain_revision.noted_at END,
    decided_at = CASE WHEN chain_revision.state = excluded.state THEN chain_revision.decided_at
        ELSE excluded.decided_at END

-- name: rename
UPDATE chain_revision SET digest = :digest WHERE chain_uid = :chain_uid AND state = 'serving'
    AND NOT EXISTS (SELECT FROM chain_revision WHERE chain_uid = :chain_uid AND digest = :digest)

-- The serving one stays, however old it is.
-- name: trim
DELETE FROM chain_revision WHERE chain_uid = :chain_uid AND state <> 'serving' AND digest NOT IN (
    SELECT digest FROM chain_revision WHERE chain_uid = :chain_uid ORDER BY noted_at DESC, digest LIMIT :kept)

-- name: forget
DELETE FROM chain_revision WHERE chain_uid = :chain_uid

-- name: chains
SELECT DISTINCT chain_uid, namespace, name FROM chain_revision
WHERE cardinality(:namespaces::text[]) = 0 OR namespace = ANY(:namespaces::text[])
