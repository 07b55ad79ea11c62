-- oldest reader: 4
-- plans: unchanged
-- Calls of judges count against the quotas of their namespace, in the share of replays. Triggers reserve and settle them.
-- They also take places under the limits of their LLMProvider, with a lease of their own. Code before this migration counts
-- no calls of judges, and those of newer code only while they are among the last minute's.

CREATE TABLE judge_spending (
    id uuid PRIMARY KEY,
    eval_run uuid REFERENCES eval_run ON DELETE CASCADE,
    investigation uuid REFERENCES investigation ON DELETE CASCADE,
    namespace text NOT NULL,
    provider text NOT NULL,
    model text NOT NULL,
    state text NOT NULL DEFAULT 'started' CHECK (state IN ('started', 'completed', 'failed', 'interrupted')),
    started_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    worst_tokens bigint NOT NULL,
    worst_cost_usd numeric,
    input_tokens bigint,
    output_tokens bigint,
    thinking_tokens bigint,
    cached_tokens bigint,
    cost_usd numeric,
    CHECK (num_nonnulls(eval_run, investigation) = 1)
);
COMMENT ON TABLE judge_spending IS 'calls of judges, for quotas and reports: of an EvalRun, or for the score of an investigation';
COMMENT ON COLUMN judge_spending.expires_at IS 'a call that has not ended by then was interrupted: its worst case is spent';
COMMENT ON COLUMN judge_spending.input_tokens IS 'null: the provider told no usage, and the worst case is spent';
CREATE INDEX judge_spending_time ON judge_spending (started_at);
CREATE INDEX judge_spending_open ON judge_spending (expires_at) WHERE state = 'started';
CREATE INDEX judge_spending_run ON judge_spending (eval_run) WHERE eval_run IS NOT NULL;
CREATE INDEX judge_spending_investigation ON judge_spending (investigation) WHERE investigation IS NOT NULL;

-- What a call that has ended counts as.
CREATE FUNCTION judge_tokens(c judge_spending) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(c.input_tokens + c.output_tokens, c.worst_tokens)
$$;
CREATE FUNCTION judge_cost(c judge_spending) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(c.cost_usd, CASE WHEN c.input_tokens IS NULL THEN c.worst_cost_usd END, 0)
$$;

CREATE FUNCTION judge_spending_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM tarsy.quota) THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'INSERT' THEN
        PERFORM tarsy.quota_reserve(NEW.id, NEW.namespace, 'replays', NEW.worst_tokens, NEW.worst_cost_usd, true);
    ELSIF TG_OP = 'UPDATE' THEN
        PERFORM tarsy.quota_settle(NEW.id, NEW.namespace, 'replays', tarsy.judge_tokens(NEW), tarsy.judge_cost(NEW));
    ELSE
        PERFORM tarsy.quota_settle(OLD.id, OLD.namespace, 'replays', tarsy.judge_tokens(OLD), tarsy.judge_cost(OLD));
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER judge_call_started AFTER INSERT ON judge_spending FOR EACH ROW WHEN (NEW.state = 'started')
    EXECUTE FUNCTION judge_spending_changed();
CREATE TRIGGER judge_call_ended AFTER UPDATE OF state ON judge_spending FOR EACH ROW
    WHEN (OLD.state = 'started' AND NEW.state <> 'started')
    EXECUTE FUNCTION judge_spending_changed();
CREATE TRIGGER judge_call_deleted AFTER DELETE ON judge_spending FOR EACH ROW WHEN (OLD.state = 'started')
    EXECUTE FUNCTION judge_spending_changed();

ALTER TABLE provider_call ALTER COLUMN investigation DROP NOT NULL, ADD COLUMN expires_at timestamptz;
COMMENT ON COLUMN provider_call.expires_at IS 'lease of a call of a judge, which belongs to no run; null: the lease of the run counts';
