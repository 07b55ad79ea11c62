-- What readers need who follow the record as it grows.

-- name: _head
id, parent, namespace, namespace_uid, revision, state NOT IN ('pending', 'running') AS finished

-- name: heads
SELECT {_head} FROM investigation WHERE id = ANY($1::uuid[])

-- Those of $1, and all that wait or run, or have just ended.
-- name: stirring
SELECT {_head} FROM investigation WHERE NOT settled
UNION ALL
SELECT {_head} FROM investigation WHERE settled AND id = ANY($1::uuid[])

-- name: streaming
SELECT id, revision FROM timeline_event WHERE investigation = $1 AND status = 'streaming'
