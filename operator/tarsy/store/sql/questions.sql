-- Enqueues questions about an investigation, and reads the work that they are answered from.

-- Serializes questions about one investigation: places are given one by one.
-- name: lock
SELECT id FROM investigation WHERE id = :id AND parent IS NULL FOR UPDATE

-- alert_data holds a copy for code before migration 16, which looks for the question there.
-- name: ask
WITH asked AS (
    INSERT INTO investigation (id, namespace, namespace_uid, name, alert_type, chain, chain_namespace, plan_hash,
        stages_planned, limit_seconds, reader, parent, place, seal)
    SELECT :id, p.namespace, p.namespace_uid, :name, p.alert_type, p.chain, p.chain_namespace, :plan_hash, 1,
        :limit_seconds, :reader, p.id,
        1 + (SELECT coalesce(max(before.place), 0) FROM investigation before WHERE before.parent = p.id),
        {_first_head}
    FROM investigation p WHERE p.id = :parent
    ON CONFLICT (id) DO NOTHING
    RETURNING id, revision, seal
), sealed AS (
    INSERT INTO sealed_step (investigation, revision, keys, digests, head)
    SELECT id, revision, :seal_keys::text[], :seal_digests::bytea[], seal FROM asked
)
INSERT INTO investigation_input (investigation, author, question, alert_data, plan)
SELECT id, :author, :question, :question, :plan FROM asked
RETURNING investigation

-- name: plan
SELECT plan FROM investigation_input WHERE investigation = :id

-- name: unfinished
SELECT id FROM investigation WHERE parent = :parent AND state IN ('pending', 'running') ORDER BY place

-- name: work
SELECT s.investigation, s.id AS stage, s.name, e.id AS execution, e.display_name, e.strategy, e.model, e.state,
    e.failure_reason, e.failure_message
FROM stage s JOIN execution e ON e.stage = s.id
WHERE s.investigation = ANY(:ids::uuid[]) AND s.kind <> 'executive_summary'
ORDER BY s.investigation, s.index, e.index

-- name: earlier
SELECT i.id, i.state, coalesce(n.question, n.alert_data) AS question, i.final_analysis AS answer,
    n.author->>'username' AS author
FROM investigation i JOIN investigation_input n ON n.investigation = i.id
WHERE i.parent = :parent AND i.state NOT IN ('pending', 'running') AND i.started_at IS NOT NULL
    AND i.place < (SELECT place FROM investigation WHERE id = :before)
ORDER BY i.place
