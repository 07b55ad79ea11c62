-- Keeps the outbox of notices about runs: a row is owed until it was sent or given up.

-- The thread of a run at a target is that of its first notice there: its Alert may have been deleted meanwhile.
-- name: owe
INSERT INTO notice (id, investigation, target, occasion, settings, thread, number)
VALUES (:id, :investigation, :target, :occasion, :settings, coalesce(
    (SELECT thread FROM notice WHERE investigation = :investigation AND target = :target ORDER BY made_at LIMIT 1),
    :thread
), :number)
ON CONFLICT DO NOTHING

-- The AlertRoute (namespace/name) whose incident an Alert stands for.
-- name: route
SELECT route FROM incident WHERE alert_uid = :alert_uid LIMIT 1

-- Takes due notices. They are due again after :seconds, should this process die before it records the result.
-- name: take
UPDATE notice n SET tries = n.tries + 1, due_at = now() + make_interval(secs => :seconds)
FROM (
    SELECT id FROM notice WHERE state = 'owed' AND due_at <= now() ORDER BY due_at LIMIT :limit FOR UPDATE SKIP LOCKED
) due
WHERE n.id = due.id
RETURNING n.id, n.investigation, n.target, n.occasion, n.settings, n.thread, n.tries, n.made_at,
    extract(epoch FROM now() - n.made_at)::float8 AS age

-- name: sent
UPDATE notice SET state = 'sent', done_at = now(), problem = NULL WHERE id = :id

-- name: failed
UPDATE notice SET state = 'failed', done_at = now(), problem = :problem WHERE id = :id

-- name: later
UPDATE notice SET problem = :problem, due_at = now() + make_interval(secs => :seconds) WHERE id = :id AND state = 'owed'

-- name: thread
SELECT ts FROM notice_thread
WHERE target = :target AND thread = :thread AND used_at > now() - make_interval(secs => :seconds)

-- name: keep_thread
INSERT INTO notice_thread AS t (target, thread, ts) VALUES (:target, :thread, :ts)
ON CONFLICT (target, thread) DO UPDATE SET
    ts = CASE WHEN t.used_at > now() - make_interval(secs => :seconds) THEN t.ts ELSE excluded.ts END, used_at = now()

-- name: forget_threads
DELETE FROM notice_thread WHERE used_at < now() - make_interval(secs => :seconds)
