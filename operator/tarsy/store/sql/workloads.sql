-- Reads the plans of runs in progress that have tool servers of their own. A parked run needs none.

-- The plan is canonical JSON as text, so a substring shows which plans need no parsing. A replay opens no tool server,
-- unless it asks them for what is not recorded.
-- name: running
SELECT i.id, i.namespace, extract(epoch FROM coalesce(i.deadline, now()) - now())::double precision AS seconds_left,
    p.plan
FROM investigation i JOIN investigation_input p ON p.investigation = i.id
WHERE i.state = 'running' AND i.parked_at IS NULL AND position('"per_run":true' IN p.plan) > 0
    AND (NOT i.replay OR position('"on_miss":"Live"' IN p.plan) > 0)
