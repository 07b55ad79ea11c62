-- Who is told how runs end: rows that are owed until they were sent, or given up.

-- name: owe
INSERT INTO notice (id, investigation, target, occasion, settings, thread) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT DO NOTHING

-- The AlertRoute (namespace/name) whose incident an Alert stands for.
-- name: route
SELECT route FROM incident WHERE alert_uid = $1 LIMIT 1

-- Takes what is due. It is due again after $2 seconds, should this process die before it has said what became of it.
-- name: take
UPDATE notice n SET tries = n.tries + 1, due_at = now() + make_interval(secs => $2)
FROM (
    SELECT id FROM notice WHERE state = 'owed' AND due_at <= now() ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED
) due
WHERE n.id = due.id
RETURNING n.id, n.investigation, n.target, n.occasion, n.settings, n.thread, n.tries, n.made_at,
    extract(epoch FROM now() - n.made_at)::float8 AS age

-- name: sent
UPDATE notice SET state = 'sent', done_at = now(), problem = NULL WHERE id = $1

-- name: failed
UPDATE notice SET state = 'failed', done_at = now(), problem = $2 WHERE id = $1

-- name: later
UPDATE notice SET problem = $2, due_at = now() + make_interval(secs => $3) WHERE id = $1 AND state = 'owed'

-- name: thread
SELECT ts FROM notice_thread WHERE target = $1 AND thread = $2 AND used_at > now() - make_interval(secs => $3)

-- name: keep_thread
INSERT INTO notice_thread AS t (target, thread, ts) VALUES ($1, $2, $3)
ON CONFLICT (target, thread) DO UPDATE SET
    ts = CASE WHEN t.used_at > now() - make_interval(secs => $4) THEN t.ts ELSE excluded.ts END, used_at = now()

-- name: forget_threads
DELETE FROM notice_thread WHERE used_at < now() - make_interval(secs => $1)
