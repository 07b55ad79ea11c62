-- Counts calls of judges. Triggers reserve and settle them in the quotas of the namespace (migration 47).

-- name: begin
INSERT INTO judge_spending (
    id, eval_run, investigation, namespace, provider, model, expires_at, worst_tokens, worst_cost_usd
) VALUES (
    :id, :eval_run, :investigation, :namespace, :provider, :model, now() + make_interval(secs => :lease_seconds),
    :worst_tokens, :worst_cost_usd
) ON CONFLICT (id) DO NOTHING

-- The first end stays.
-- name: end
UPDATE judge_spending SET state = :state, input_tokens = :input_tokens, output_tokens = :output_tokens,
    thinking_tokens = :thinking_tokens, cached_tokens = :cached_tokens, cost_usd = :cost_usd
WHERE id = :id AND state = 'started'

-- name: interrupt
UPDATE judge_spending SET state = 'interrupted' WHERE state = 'started' AND expires_at < now()
