-- Fragments that statements of several files contain.

-- The head of the chain of seals (`seal.next_head`) after the first step of a run, after a later step, and after the one
-- that ends a run before a worker had it. `i` is the investigation before the step.
-- name: _sealed_at
int8send((extract(epoch FROM now()) * 1000000)::bigint)

-- name: _first_head
sha256(:seal_digest::bytea || {_sealed_at})

-- name: _next_head
sha256(coalesce(i.seal, '') || :seal_digest::bytea || {_sealed_at})

-- name: _ended_head
sha256(coalesce(i.seal, '') || :ended_seal_digest::bytea || {_sealed_at})

-- Calls of stage `s` that were sent after people approved them, as JSON; null: none, or the stage is of another kind.
-- name: _actions
CASE WHEN s.kind = 'action' THEN (
    SELECT jsonb_agg(sent.call ORDER BY sent.place)
    FROM (
        SELECT jsonb_build_object(
            'key', c.idempotency_key, 'tool', concat_ws('.', nullif(c.server, ''), c.tool), 'state', c.state
        ) AS call, ARRAY[x.index, c.message_seq, c.index, c.attempt] AS place
        FROM execution x JOIN mcp_interaction c ON c.execution = x.id JOIN tool_approval a ON a.interaction = c.id
        WHERE x.stage = s.id AND c.made AND a.state = 'consumed'
        ORDER BY place LIMIT 50
    ) sent
) END

-- Model calls that are over, begun since {_since} of the file, in the namespaces with these uids (null: all). A call that an
-- attempt left open was billed with an unknown amount, or is left out when it was never sent; a refused one used nothing.
-- Calls of judges count to what they judge: an investigation that is scored, or the chain of an EvalRun, which counts as a
-- replay. `latest` tells a namespace that was deleted and created again from its predecessors.
-- name: _used_calls
latest AS (
    SELECT DISTINCT ON (namespace) namespace, namespace_uid FROM investigation WHERE :by = 'namespace'
    ORDER BY namespace, accepted_at DESC
), calls AS (
    SELECT c.model, c.provider, c.state, c.started_at, c.input_tokens, c.output_tokens, c.thinking_tokens, c.cached_tokens,
        c.cost_usd, i.namespace, i.namespace_uid, coalesce(i.parent, i.id) AS investigation,
        i.chain_namespace || '/' || i.chain AS chain, i.alert_type, n.author ->> 'username' AS author,
        i.parent IS NULL AND i.finding IS NOT NULL AS has_finding,
        c.state = 'failed' AND coalesce(c.input_tokens + c.output_tokens, 0) = 0 AND c.estimated_tokens = 0 AS refused
    FROM llm_interaction c
    JOIN execution e ON e.id = c.execution
    JOIN stage s ON s.id = e.stage
    JOIN investigation i ON i.id = s.investigation
    LEFT JOIN investigation_input n ON n.investigation = i.id AND :by = 'author'
    WHERE c.started_at >= {_since} AND c.state <> 'started'
        AND (c.state <> 'interrupted' OR c.input_tokens IS NULL)
        AND (:namespace_uids::text[] IS NULL OR i.namespace_uid = ANY(:namespace_uids))
        AND (:replays OR NOT i.replay)
    UNION ALL
    SELECT c.model, c.provider, c.state, c.started_at, c.input_tokens, c.output_tokens, c.thinking_tokens, c.cached_tokens,
        c.cost_usd, c.namespace, coalesce(i.namespace_uid, r.namespace_uid), i.id,
        coalesce(i.chain_namespace || '/' || i.chain, r.chain_namespace || '/' || r.chain),
        coalesce(i.alert_type, '(EvalRun)'), CASE WHEN i.id IS NULL THEN '(EvalRun)' ELSE n.author ->> 'username' END,
        false, false
    FROM judge_spending c
    LEFT JOIN investigation i ON i.id = c.investigation
    LEFT JOIN eval_run r ON r.id = c.eval_run
    LEFT JOIN investigation_input n ON n.investigation = i.id AND :by = 'author'
    WHERE c.started_at >= {_since} AND c.state <> 'started'
        AND (:namespace_uids::text[] IS NULL OR coalesce(i.namespace_uid, r.namespace_uid) = ANY(:namespace_uids))
        AND (:replays OR c.eval_run IS NULL)
)

-- name: _used_name
CASE :by
    WHEN 'model' THEN c.model
    WHEN 'provider' THEN c.provider
    WHEN 'chain' THEN c.chain
    WHEN 'alertType' THEN c.alert_type
    WHEN 'author' THEN coalesce(nullif(c.author, ''), '(unknown)')
    WHEN 'day' THEN to_char(c.started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')
    ELSE c.namespace || CASE WHEN c.namespace_uid = l.namespace_uid THEN '' ELSE ' (uid ' || c.namespace_uid || ')' END
END

-- name: _used_runs
count(DISTINCT c.investigation) AS investigations,
    count(DISTINCT c.investigation) FILTER (WHERE c.has_finding) AS findings

-- name: _used_sums
count(*) AS calls,
    count(*) FILTER (WHERE c.state = 'interrupted') AS interrupted,
    coalesce(sum(c.input_tokens), 0)::bigint AS input_tokens,
    coalesce(sum(c.output_tokens), 0)::bigint AS output_tokens,
    coalesce(sum(c.thinking_tokens), 0)::bigint AS thinking_tokens,
    coalesce(sum(c.cached_tokens), 0)::bigint AS cached_tokens,
    count(*) FILTER (WHERE c.input_tokens IS NULL AND NOT c.refused) AS calls_of_unknown_usage,
    sum(c.cost_usd) AS cost_usd,
    count(*) FILTER (WHERE c.cost_usd IS NULL AND NOT c.refused) AS calls_of_unknown_cost
