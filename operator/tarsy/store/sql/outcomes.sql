-- Decides the outcomes of finished runs from incidents, changes and approved calls.

-- The run to look at next. Two controllers look at different ones.
-- name: next
SELECT l.investigation, l.alert_uid, i.namespace_uid, i.alert_type, i.finished_at, i.finding->>'confidence' AS confidence,
    now() AS now
FROM outcome_look l JOIN investigation i ON i.id = l.investigation
WHERE l.look_at <= now() ORDER BY l.look_at LIMIT 1 FOR UPDATE OF l SKIP LOCKED

-- The incident of an Alert, those that a storm folded into it, and those of Alerts with its key that were folded into it,
-- all as far as they had begun when the run ended; each with its first firing after it was resolved. A row of a folded
-- Alert (its name is not that of its parent) is a repeat, and no incident of its own.
-- name: courses
WITH own AS (
    SELECT * FROM incident WHERE alert_uid = :alert_uid LIMIT 1
), these AS (
    SELECT * FROM own
    UNION ALL
    (SELECT c.* FROM own JOIN incident c ON c.parent = own.id
    WHERE c.alert = own.alert AND c.opened_at <= :finished_at ORDER BY c.opened_at LIMIT :limit)
    UNION ALL
    (SELECT k.* FROM own JOIN incident k ON k.namespace = own.namespace AND k.incident_key = own.incident_key
    WHERE k.parent IS NULL AND k.id <> own.id AND k.opened_at <= :finished_at
        AND k.alert IN (SELECT f.alert FROM incident f WHERE f.parent = own.id)
    ORDER BY k.opened_at LIMIT :limit)
)
SELECT t.id, t.settled_at, least(t.refired_at, of_group.at, of_key.at) AS fired_again_at
FROM these t, LATERAL (
    SELECT min(n.opened_at) AS at FROM incident n LEFT JOIN incident p ON p.id = n.parent
    WHERE n.group_hash = t.group_hash AND n.opened_at > coalesce(t.settled_at, :finished_at) AND n.id <> t.id
        AND (p.id IS NULL OR p.alert = n.alert)
) of_group, LATERAL (
    SELECT min(n.opened_at) AS at FROM incident n
    WHERE n.namespace = t.namespace AND n.incident_key = t.incident_key AND n.opened_at > t.settled_at
        AND n.id <> t.id AND n.parent IS NULL
) of_key

-- name: blamed
SELECT key FROM precedent_key WHERE investigation = :investigation ORDER BY key LIMIT 100

-- The first change of one of :objects (KIND/NAME), or of a workload of :workloads, in a window: a recorded one, or a call
-- that people approved. An approved call of the run itself counts before its finding, too.
-- name: change
SELECT what FROM (
    (SELECT v.kind || '/' || v.name AS what, coalesce(v.recorded_at, v.seen_at) AS at FROM object_version v
    WHERE v.namespace_uid = :namespace_uid
        AND v.seen_at BETWEEN :since::timestamptz - interval '1 hour' AND :until::timestamptz + interval '1 hour'
        AND coalesce(v.recorded_at, v.seen_at) BETWEEN :since AND :until AND v.type = ANY(:types::text[])
        AND (v.kind || '/' || v.name = ANY(:objects::text[])
            OR (v.kind = ANY(:kinds::text[]) AND v.name = ANY(:workloads::text[])))
    ORDER BY at LIMIT 1)
    UNION ALL
    (SELECT (t->>'kind') || '/' || (t->>'name'), a.decided_at
    FROM tool_approval a JOIN investigation i ON i.id = a.investigation, jsonb_array_elements(a.targets) t
    WHERE a.state = 'consumed' AND i.namespace_uid = :namespace_uid
        AND (a.decided_at BETWEEN :since AND :until OR (a.investigation = :investigation AND a.decided_at <= :until))
        AND ((t->>'kind') || '/' || (t->>'name') = ANY(:objects)
            OR (t->>'kind' = ANY(:kinds) AND t->>'name' = ANY(:workloads)))
    ORDER BY 2 LIMIT 1)
) found ORDER BY at LIMIT 1

-- name: put_incident
INSERT INTO incident_outcome (investigation, incident, outcome, settled_at, fired_again_at, change)
VALUES (:investigation, :incident, :outcome, :settled_at, :fired_again_at, :change)
ON CONFLICT (investigation, incident) DO NOTHING

-- The status of its object is written again, even if this process ends before.
-- name: decided
UPDATE investigation SET incident_outcome = :outcome, published_digest = NULL
WHERE id = :investigation AND incident_outcome IS NULL

-- name: look_again
UPDATE outcome_look SET look_at = greatest(:at, now() + interval '1 second') WHERE investigation = :investigation

-- name: done
DELETE FROM outcome_look WHERE investigation = :investigation

-- name: of_run
SELECT incident, outcome, settled_at, fired_again_at, change, decided_at FROM incident_outcome
WHERE investigation = :investigation ORDER BY decided_at, incident LIMIT :limit
