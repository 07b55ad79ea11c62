-- Reads how configuration objects did in recorded runs. A plan lists the objects that it was made from: by that list the
-- names in calls belong to objects, also where the library has one of the same name.

-- name: _refs
plans AS (
    SELECT DISTINCT ON (r.plan_hash) r.plan_hash, n.plan::jsonb -> 'objects' AS objects
    FROM recent r JOIN investigation_input n ON n.investigation = r.id ORDER BY r.plan_hash
), refs AS (
    SELECT DISTINCT ON (p.plan_hash, o.kind, o.name) p.plan_hash, o.kind, o.namespace, o.name
    FROM plans p, jsonb_to_recordset(p.objects) AS o (kind text, namespace text, name text)
    ORDER BY p.plan_hash, o.kind, o.name, o.namespace
)

-- Calls of models and tools, executions of agents and runs of chains that ended in the last :hours, by the hour in which
-- they began (0 is the hour until now), of the namespaces with these uids (null: all). Replays call no server. A run is
-- no older than its calls by more than :longest hours.
-- name: activity
WITH recent AS (
    SELECT id, plan_hash, parent, chain, state, started_at, finished_at FROM investigation
    WHERE accepted_at >= now() - make_interval(hours => :hours::integer + :longest::integer) AND NOT replay
        AND (:namespace_uids::text[] IS NULL OR namespace_uid = ANY(:namespace_uids))
), {_refs}, executed AS (
    SELECT r.plan_hash, e.id, e.agent, e.state, e.started_at, e.finished_at
    FROM recent r JOIN stage s ON s.investigation = r.id JOIN execution e ON e.stage = s.id
), ended AS (
    SELECT e.plan_hash, 'LLMProvider' AS kind, c.provider AS name, c.started_at, c.state = 'failed' AS failed
    FROM executed e JOIN llm_interaction c ON c.execution = e.id WHERE c.state IN ('completed', 'failed')
    UNION ALL
    SELECT e.plan_hash, 'MCPServer', c.server, c.started_at, c.state = 'failed'
    FROM executed e JOIN mcp_interaction c ON c.execution = e.id WHERE c.state IN ('completed', 'failed') AND c.made
    UNION ALL
    SELECT plan_hash, 'Agent', agent, started_at, state IN ('failed', 'timed_out')
    FROM executed WHERE finished_at IS NOT NULL
    UNION ALL
    SELECT plan_hash, 'Chain', chain, started_at, state IN ('failed', 'timed_out')
    FROM recent WHERE finished_at IS NOT NULL AND started_at IS NOT NULL AND parent IS NULL
)
SELECT refs.kind, refs.namespace, refs.name, aged.hour,
    count(*) FILTER (WHERE NOT ended.failed) AS succeeded, count(*) FILTER (WHERE ended.failed) AS failed
FROM ended JOIN refs USING (plan_hash, kind, name),
LATERAL (SELECT floor(extract(epoch FROM now() - ended.started_at) / 3600)::integer AS hour) aged
WHERE aged.hour >= 0 AND aged.hour < :hours
GROUP BY refs.kind, refs.namespace, refs.name, aged.hour ORDER BY refs.kind, refs.namespace, refs.name, aged.hour DESC

-- The latest runs whose plan was made from an object, among the latest :looked runs.
-- name: runs
WITH recent AS (
    SELECT id, plan_hash, namespace, name, chain_namespace, chain, state, accepted_at, finished_at FROM investigation
    WHERE parent IS NULL AND (:namespace_uids::text[] IS NULL OR namespace_uid = ANY(:namespace_uids))
    ORDER BY accepted_at DESC, id DESC LIMIT :looked
), {_refs}
SELECT r.id, r.namespace, r.name, r.chain_namespace, r.chain, r.state, r.accepted_at, r.finished_at
FROM recent r JOIN refs USING (plan_hash)
WHERE refs.kind = :kind AND refs.namespace = :of_namespace AND refs.name = :of_name
ORDER BY r.accepted_at DESC, r.id DESC LIMIT :limit
