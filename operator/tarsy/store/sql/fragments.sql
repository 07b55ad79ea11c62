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
