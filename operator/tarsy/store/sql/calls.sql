-- Reads the outcome of model calls by LLMProvider.

-- A plan names its providers by name; uid, namespace and generation are those of the objects that it was made from.
-- Interrupted calls are left out: they show nothing about their provider. A plan that many runs follow is read once: its
-- hash is that of its text.
-- name: ended_since
WITH ended AS (
    SELECT c.id, c.provider, c.finished_at, c.failure_reason, i.id AS investigation, i.plan_hash
    FROM llm_interaction c JOIN execution e ON e.id = c.execution JOIN stage s ON s.id = e.stage
        JOIN investigation i ON i.id = s.investigation
    WHERE c.started_at > :moment::timestamptz - interval '1 hour' AND c.finished_at > :moment
        AND c.state <> 'interrupted'
    ORDER BY c.finished_at DESC LIMIT :limit
), asked AS (
    SELECT d.plan_hash, o.*
    FROM (SELECT DISTINCT ON (plan_hash) plan_hash, investigation FROM ended ORDER BY plan_hash) d
        JOIN investigation_input n USING (investigation),
        jsonb_to_recordset(n.plan::jsonb->'objects') AS o(kind text, namespace text, name text, uid text, generation bigint)
    WHERE o.kind = 'LLMProvider'
)
SELECT ended.id, ended.finished_at, ended.failure_reason, asked.namespace, asked.name, asked.uid, asked.generation
FROM ended JOIN asked ON asked.plan_hash = ended.plan_hash AND asked.name = ended.provider
ORDER BY ended.finished_at, ended.id
