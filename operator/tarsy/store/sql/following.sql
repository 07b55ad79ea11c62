-- Reads the progress of runs for clients that follow them.

-- name: _head
id, parent, namespace, namespace_uid, revision, state NOT IN ('pending', 'running') AS finished

-- name: heads
SELECT {_head} FROM investigation WHERE id = ANY(:ids::uuid[])

-- Runs of :known, and all runs that wait or run, or have just ended.
-- name: stirring
SELECT {_head} FROM investigation WHERE NOT settled
UNION ALL
SELECT {_head} FROM investigation WHERE settled AND id = ANY(:known::uuid[])

-- name: streaming
SELECT id, revision FROM timeline_event WHERE investigation = :investigation AND status = 'streaming'
