-- Reads and writes what people said about findings.

-- name: _activity
SELECT r.review, r.author, r.action, r.verdict, r.root_cause, r.note, r.at FROM review_activity r

-- Two controllers write one after the other.
-- name: lock
SELECT pg_advisory_xact_lock(:key, hashtext(:investigation::uuid::text))

-- name: log
{_activity} WHERE r.investigation = :investigation ORDER BY r.id

-- name: append
INSERT INTO review_activity (investigation, review, object_uid, author, action, verdict, root_cause, note)
SELECT :investigation, :review, :object_uid, :author, :action, :verdict, :root_cause, :note
FROM investigation WHERE id = :investigation
RETURNING at, (SELECT i.finding->>'confidence' FROM investigation i WHERE i.id = :investigation) AS confidence

-- The last entry of a deleted object, if it is a claim.
-- name: claim_of
SELECT investigation, review, author FROM (
    SELECT investigation, review, author, action FROM review_activity
    WHERE object_uid = :object_uid ORDER BY id DESC LIMIT 1
) last WHERE action = 'claimed'

-- name: summarize
INSERT INTO review_summary AS s (investigation, state, verdict, claimed_by, reviewed_by)
SELECT id, :state, :verdict, :claimed_by::text[], :reviewed_by::text[] FROM investigation WHERE id = :investigation
ON CONFLICT (investigation) DO UPDATE SET state = excluded.state, verdict = excluded.verdict,
    claimed_by = excluded.claimed_by, reviewed_by = excluded.reviewed_by, changed_at = now()

-- The latest run of a name in a namespace, or the one of a uid.
-- name: reviewable
SELECT i.id, i.finished_at IS NOT NULL AS finished, i.finding IS NOT NULL AS finding, i.replay,
    i.incident_outcome AS outcome
FROM investigation i
WHERE i.namespace = :namespace AND i.namespace_uid = :namespace_uid AND i.name = :name AND i.parent IS NULL
    AND (:uid::uuid IS NULL OR i.id = :uid)
ORDER BY i.accepted_at DESC LIMIT 1

-- The queue: finished investigations with a finding, the last to end first.
-- name: queue
SELECT i.id, i.namespace, i.name, i.alert_type, i.chain, i.chain_namespace, i.finished_at, i.object_deleted_at,
    i.finding->>'summary' AS summary, i.finding->>'confidence' AS confidence,
    coalesce(s.state, 'NeedsReview') AS state, s.verdict, s.claimed_by, s.reviewed_by, s.changed_at,
    i.incident_outcome AS outcome
FROM investigation i LEFT JOIN review_summary s ON s.investigation = i.id
WHERE i.finished_at IS NOT NULL AND i.finding IS NOT NULL AND i.parent IS NULL AND NOT i.replay
    AND i.state <> 'cancelled' AND coalesce(s.state, 'NeedsReview') = :state
    AND (:namespace_uids::text[] IS NULL OR i.namespace_uid = ANY(:namespace_uids))
    AND (:after_time::timestamptz IS NULL OR (i.finished_at, i.id) < (:after_time, :after_id::uuid))
ORDER BY i.finished_at DESC, i.id DESC LIMIT :limit
