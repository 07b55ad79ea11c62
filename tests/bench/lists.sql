-- Finished investigations number $1 to $2, as lists and searches meet them: texts of words that many have, and few.

-- name: investigation
INSERT INTO investigation (id, namespace, namespace_uid, name, alert_type, chain, chain_namespace, plan_hash,
    stages_planned, limit_seconds, accepted_at, started_at, deadline, attempt)
SELECT md5('run' || n)::uuid, 'team-' || n % 20, 'uid-' || n % 20, 'alert-' || n, 'Type' || n % 50, 'chain-' || n % 7,
    'library', md5(n::text), 2, 3600, t.accepted, t.accepted, t.accepted + interval '1 hour', 1
FROM generate_series($1::integer, $2::integer) n, LATERAL (SELECT now() - n * interval '20 s' AS accepted) t

-- name: input
INSERT INTO investigation_input (investigation, author, alert_data, plan, severity)
SELECT md5('run' || n)::uuid, jsonb_build_object('username', 'user-' || n % 300), t.words || ' pod=checkout-' || n, '',
    (ARRAY['Critical', 'Warning', 'Info'])[1 + n % 4]
FROM generate_series($1::integer, $2::integer) n,
LATERAL (SELECT string_agg('word' || (n::bigint * k * 7919) % 20000, ' ') AS words FROM generate_series(1, 40) k) t

-- name: ended
UPDATE investigation i SET
    state = CASE WHEN n % 1000 = 0 THEN 'running' WHEN n % 10 = 0 THEN 'failed' ELSE 'completed' END,
    finished_at = i.accepted_at + interval '100 s', settled = true, published_revision = 50, revision = 50,
    input_tokens = (n * 7919) % 50000, output_tokens = 5000, model_calls = 10, tool_calls = 8,
    cost_usd = ((n * 31) % 1000) / 100.0, executive_summary = 'The image of checkout does not exist.',
    final_analysis = repeat('The kubelet cannot pull it. ', 20) || CASE WHEN n % 5000 = 17 THEN 'zebra' ELSE '' END,
    finding = '{"summary": "The image does not exist.", "confidence": "High"}'
FROM generate_series($1::integer, $2::integer) n WHERE i.id = md5('run' || n)::uuid

-- name: stages
INSERT INTO stage (id, investigation, index, name, kind, expected_agents, state, finished_at, revision)
SELECT md5('stage' || n || '/' || s)::uuid, md5('run' || n)::uuid, s, 'stage-' || s, 'investigation', 1, 'completed',
    now(), 40
FROM generate_series($1::integer, $2::integer) n, generate_series(0, 1) s

-- name: events
INSERT INTO timeline_event (id, investigation, seq, revision, type, status, content, metadata)
SELECT gen_random_uuid(), md5('run' || n)::uuid, k, k, 'llm_response', 'completed', repeat(md5((n * k)::text), 9), '{}'
FROM generate_series($1::integer, $2::integer) n, generate_series(1, 60) k
