-- What the runs under way have of their own in the cluster.

-- The plan is canonical JSON as text: what it does not hold is seen without reading it as JSON.
-- name: running
SELECT i.id, i.namespace, extract(epoch FROM coalesce(i.deadline, now()) - now())::double precision AS seconds_left,
    p.plan
FROM investigation i JOIN investigation_input p ON p.investigation = i.id
WHERE i.state = 'running' AND position('"per_run":true' IN p.plan) > 0
