-- Finished investigations, $1 their ids. Each has two stages of one agent, which made five model and four tool calls.

-- name: investigation
INSERT INTO investigation (id, namespace, namespace_uid, name, alert_type, chain, chain_namespace, plan_hash,
    stages_planned, limit_seconds, state, attempt, accepted_at, started_at, deadline, finished_at, revision,
    published_revision, settled, event_seq, input_tokens, output_tokens, model_calls, tool_calls, cost_usd,
    final_analysis, finding)
SELECT r.id, $3, $4, r.name, 'PodCrash', 'chain-' || r.n % 7, 'library', md5(r.name), 2, 3600, 'completed', 1,
    t.ended - interval '100 s', t.ended - interval '90 s', t.ended + interval '1 hour', t.ended, $5 + 50, $5 + 50, true,
    $5, 50000, 5000, 10, 8, 0.05, repeat(md5(r.name), 20),
    '{"summary": "The image does not exist.", "confidence": "High"}'
FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS r (id, name, n),
LATERAL (SELECT now() - ($6 + r.n) * interval '20 s' AS ended) t

-- name: input
INSERT INTO investigation_input (investigation, author, alert_data, plan)
SELECT id, '{}', repeat(md5(random()::text), 30),
    '{"objects": [], "filler": "' || repeat(md5(random()::text), 150) || '"}'
FROM unnest($1::uuid[]) AS r (id)

-- name: stages
INSERT INTO stage (id, investigation, index, name, kind, expected_agents, state, finished_at, revision)
SELECT md5('stage' || r.id || n)::uuid, r.id, n, 'stage-' || n, 'investigation', 1, 'completed', now(), 40
FROM unnest($1::uuid[]) AS r (id), generate_series(0, 1) n

-- name: executions
INSERT INTO execution (id, stage, index, agent, display_name, strategy, provider, model, state, finished_at, result)
SELECT md5('execution' || s.id)::uuid, s.id, 0, 'investigator', 'investigator', 'langchain', 'model', 'scripted',
    'completed', now(), repeat(md5(s.id::text), 20)
FROM stage s WHERE s.investigation = ANY($1)

-- name: messages
INSERT INTO message (execution, seq, role, content)
SELECT e.id, n, 'user', repeat(md5(random()::text), 25)
FROM stage s JOIN execution e ON e.stage = s.id, generate_series(0, 10) n WHERE s.investigation = ANY($1)

-- name: model_calls
INSERT INTO llm_interaction (id, execution, number, kind, provider, model, strategy, message_count, tool_set, state,
    started_at, finished_at, duration_ms, message_seq, input_tokens, output_tokens, cost_usd)
SELECT md5('call' || e.id || n)::uuid, e.id, n, 'iteration', 'model', 'model-' || n % 3, 'langchain', 2 + 2 * n,
    'tools', 'completed', i.started_at, i.finished_at, 900, 2 + 2 * n, 5000, 500, 0.005
FROM investigation i JOIN stage s ON s.investigation = i.id JOIN execution e ON e.stage = s.id, generate_series(0, 4) n
WHERE i.id = ANY($1)

-- name: tool_calls
INSERT INTO mcp_interaction (id, execution, message_seq, index, attempt, call_id, server, tool, arguments,
    idempotency_key, state, finished_at, duration_ms, result)
SELECT md5('tool' || e.id || n)::uuid, e.id, 2 + 2 * n, 0, 0, 'call', 'kubernetes', 'get', '{"kind": "Pod"}',
    md5('key' || e.id || n), 'completed', now(), 30, repeat(md5(random()::text), 40)
FROM stage s JOIN execution e ON e.stage = s.id, generate_series(0, 3) n WHERE s.investigation = ANY($1)

-- name: events
INSERT INTO timeline_event (id, investigation, seq, revision, type, status, content, metadata, stage, execution)
SELECT gen_random_uuid(), r.id, n, n / 2 + 1, 'llm_response', 'completed', repeat(md5(random()::text), 9), '{}',
    md5('stage' || r.id || n % 2)::uuid, md5('execution' || md5('stage' || r.id || n % 2)::uuid)::uuid
FROM unnest($1::uuid[]) AS r (id), generate_series(1, $2::integer) n
