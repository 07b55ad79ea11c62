-- oldest reader: 4
-- plans: unchanged
-- What a namespace may spend in a period, over all workers. Triggers count the runs and reserve and settle the calls, so
-- that no code, old or new, spends without being counted. Code before this migration names no worst case of its calls:
-- they reserve their estimate, and are never refused.

CREATE TABLE quota (
    uid text PRIMARY KEY,
    namespace text NOT NULL,
    name text NOT NULL,
    generation bigint NOT NULL,
    period text NOT NULL CHECK (period IN ('hour', 'day', 'week', 'month')),
    cost_usd numeric,
    tokens bigint,
    investigations bigint,
    on_exceeded text NOT NULL CHECK (on_exceeded IN ('Queue', 'Reject', 'TriageOnly')),
    shares jsonb NOT NULL
);
COMMENT ON TABLE quota IS 'as the newest generation of the object has it; NULL is no limit';
COMMENT ON COLUMN quota.shares IS 'percent of each limit that replays, questions and schedules may use';
CREATE INDEX quota_namespace ON quota (namespace);

CREATE TABLE quota_usage (
    quota text NOT NULL REFERENCES quota ON DELETE CASCADE,
    starts_at timestamptz NOT NULL,
    share text NOT NULL,
    ends_at timestamptz NOT NULL,
    spent_usd numeric NOT NULL DEFAULT 0,
    spent_tokens bigint NOT NULL DEFAULT 0,
    reserved_usd numeric NOT NULL DEFAULT 0,
    reserved_tokens bigint NOT NULL DEFAULT 0,
    investigations bigint NOT NULL DEFAULT 0,
    refusals bigint NOT NULL DEFAULT 0,
    refused_usd numeric,
    refused_tokens bigint,
    PRIMARY KEY (quota, starts_at, share)
) WITH (fillfactor = 60);
COMMENT ON COLUMN quota_usage.share IS 'all, which is locked before the others; or replays, questions, schedules';
COMMENT ON COLUMN quota_usage.refused_tokens IS
    'smallest worst case of a call that did not fit in this period: with less room than that no run is started';

CREATE TABLE quota_reservation (
    call uuid NOT NULL,
    quota text NOT NULL,
    starts_at timestamptz NOT NULL,
    share text NOT NULL,
    cost_usd numeric NOT NULL,
    tokens bigint NOT NULL,
    PRIMARY KEY (call, quota),
    FOREIGN KEY (quota, starts_at, share) REFERENCES quota_usage ON DELETE CASCADE
);
COMMENT ON TABLE quota_reservation IS 'worst cases of model calls that have begun and are not settled';
CREATE INDEX quota_reservation_usage ON quota_reservation (quota, starts_at, share);

ALTER TABLE investigation
    ADD COLUMN scheduled boolean NOT NULL DEFAULT false,
    ADD COLUMN held_for text,
    ADD COLUMN held_until timestamptz,
    ADD COLUMN triage_for text;
COMMENT ON COLUMN investigation.scheduled IS 'an AlertSchedule created its alert';
COMMENT ON COLUMN investigation.held_for IS 'the quota that keeps a pending run from starting, as a sentence';
COMMENT ON COLUMN investigation.held_until IS 'when the quota of a pending run is looked at again';
COMMENT ON COLUMN investigation.triage_for IS 'why the run asks no model, as a sentence';

ALTER TABLE llm_interaction ADD COLUMN worst_tokens bigint, ADD COLUMN worst_cost_usd numeric;
COMMENT ON COLUMN llm_interaction.worst_tokens IS 'input and the longest output; null: code before migration 39 wrote it';
COMMENT ON COLUMN llm_interaction.worst_cost_usd IS 'of worst_tokens; null: no rates are known';

CREATE FUNCTION quota_share(run investigation) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN run.replay THEN 'replays' WHEN run.parent IS NOT NULL THEN 'questions'
        WHEN run.scheduled THEN 'schedules' ELSE 'all' END
$$;

-- The limits of a share: percent of those of the quota, rounded down.
CREATE FUNCTION quota_percent(q quota, share text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE share WHEN 'all' THEN 100 ELSE coalesce((q.shares->>share)::integer, 100) END
$$;

-- Makes the rows of a period, locks that of all, and returns the start of the period. Periods follow UTC.
CREATE FUNCTION quota_open(q quota, class text) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
    starts timestamp = date_trunc(q.period, clock_timestamp() AT TIME ZONE 'UTC');
    ends timestamp = starts + ('1 ' || q.period)::interval;
BEGIN
    INSERT INTO tarsy.quota_usage (quota, starts_at, share, ends_at)
    SELECT q.uid, starts AT TIME ZONE 'UTC', share, ends AT TIME ZONE 'UTC' FROM unnest(ARRAY['all', class]) AS share
    WHERE NOT EXISTS (
        SELECT FROM tarsy.quota_usage u
        WHERE u.quota = q.uid AND u.starts_at = starts AT TIME ZONE 'UTC' AND u.share = class
    )
    ON CONFLICT DO NOTHING;
    PERFORM FROM tarsy.quota_usage u
    WHERE u.quota = q.uid AND u.starts_at = starts AT TIME ZONE 'UTC' AND u.share = 'all' FOR UPDATE;
    RETURN starts AT TIME ZONE 'UTC';
END $$;

CREATE FUNCTION quota_refuse(q quota, u quota_usage, what text, need numeric, hard numeric) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the call does not fit into InvestigationQuota %', q.name USING ERRCODE = 'TQ001',
        DETAIL = jsonb_build_object(
            'uid', q.uid, 'name', q.name, 'period', q.period, 'on_exceeded', q.on_exceeded, 'limit', what,
            'share', u.share, 'starts_at', u.starts_at, 'ends_at', u.ends_at, 'need', need, 'hard', hard,
            'used', CASE what WHEN 'tokens' THEN u.spent_tokens + u.reserved_tokens
                WHEN 'dollars' THEN u.spent_usd + u.reserved_usd END
        )::text;
END $$;

-- Reserves the worst case of a call in every quota of its namespace, or raises TQ001 and changes nothing.
CREATE FUNCTION quota_reserve(call uuid, space text, class text, worst_tokens bigint, worst_usd numeric, strict boolean)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    q tarsy.quota;
    u tarsy.quota_usage;
    starts timestamptz;
    percent integer;
BEGIN
    FOR q IN SELECT * FROM tarsy.quota WHERE namespace = space ORDER BY uid FOR KEY SHARE LOOP
        starts = tarsy.quota_open(q, class);
        FOR u IN SELECT * FROM tarsy.quota_usage WHERE quota = q.uid AND starts_at = starts AND share IN ('all', class)
            AND strict ORDER BY share
        LOOP
            percent = tarsy.quota_percent(q, u.share);
            IF q.cost_usd IS NOT NULL AND worst_usd IS NULL THEN
                PERFORM tarsy.quota_refuse(q, u, 'price', NULL, q.cost_usd);
            ELSIF u.spent_usd + u.reserved_usd + worst_usd > q.cost_usd * percent / 100 THEN
                PERFORM tarsy.quota_refuse(q, u, 'dollars', worst_usd, q.cost_usd * percent / 100);
            ELSIF u.spent_tokens + u.reserved_tokens + worst_tokens > q.tokens * percent / 100 THEN
                PERFORM tarsy.quota_refuse(q, u, 'tokens', worst_tokens, q.tokens * percent / 100);
            END IF;
        END LOOP;
        UPDATE tarsy.quota_usage SET
            reserved_tokens = reserved_tokens + worst_tokens, reserved_usd = reserved_usd + coalesce(worst_usd, 0)
        WHERE quota = q.uid AND starts_at = starts AND share IN ('all', class);
        INSERT INTO tarsy.quota_reservation (call, quota, starts_at, share, cost_usd, tokens)
        VALUES (call, q.uid, starts, class, coalesce(worst_usd, 0), worst_tokens) ON CONFLICT DO NOTHING;
    END LOOP;
END $$;

-- Replaces the reservation of a call by what it has used, in the period in which it began. Where that is not known
-- (NULL), the worst case counts as used. A call that began before its quota existed counts in the period of its end.
CREATE FUNCTION quota_settle(ended uuid, space text, class text, used_tokens bigint, used_usd numeric,
    reserved_only boolean = false)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    q tarsy.quota;
    r tarsy.quota_reservation;
BEGIN
    FOR q IN SELECT * FROM tarsy.quota WHERE namespace = space ORDER BY uid FOR KEY SHARE LOOP
        SELECT * INTO r FROM tarsy.quota_reservation WHERE call = ended AND quota = q.uid;
        CONTINUE WHEN reserved_only AND r.call IS NULL;
        IF r.call IS NULL THEN
            r.starts_at = tarsy.quota_open(q, class);
            r.share = class;
        ELSE
            PERFORM FROM tarsy.quota_usage u
            WHERE u.quota = q.uid AND u.starts_at = r.starts_at AND u.share = 'all' FOR UPDATE;
            DELETE FROM tarsy.quota_reservation WHERE call = ended AND quota = q.uid;
        END IF;
        UPDATE tarsy.quota_usage SET
            reserved_tokens = reserved_tokens - coalesce(r.tokens, 0),
            reserved_usd = reserved_usd - coalesce(r.cost_usd, 0),
            spent_tokens = spent_tokens + coalesce(used_tokens, r.tokens, 0),
            spent_usd = spent_usd + coalesce(used_usd, r.cost_usd, 0)
        WHERE quota = q.uid AND starts_at = r.starts_at AND share IN ('all', r.share);
    END LOOP;
END $$;

-- Counts a run that starts. The claim decides whether it may, under its lock.
CREATE FUNCTION quota_run_started() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    q tarsy.quota;
    starts timestamptz;
BEGIN
    FOR q IN SELECT * FROM tarsy.quota WHERE namespace = NEW.namespace ORDER BY uid FOR KEY SHARE LOOP
        starts = tarsy.quota_open(q, tarsy.quota_share(NEW));
        UPDATE tarsy.quota_usage SET investigations = investigations + 1
        WHERE quota = q.uid AND starts_at = starts AND share IN ('all', tarsy.quota_share(NEW));
    END LOOP;
    RETURN NULL;
END $$;

CREATE FUNCTION quota_call_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    run tarsy.investigation;
BEGIN
    IF NOT EXISTS (SELECT FROM tarsy.quota) THEN
        RETURN NULL;
    END IF;
    SELECT i.* INTO run FROM tarsy.execution e JOIN tarsy.stage s ON s.id = e.stage
    JOIN tarsy.investigation i ON i.id = s.investigation WHERE e.id = NEW.execution;
    IF TG_OP = 'INSERT' THEN
        PERFORM tarsy.quota_reserve(
            NEW.id, run.namespace, tarsy.quota_share(run), coalesce(NEW.worst_tokens, NEW.estimated_tokens),
            CASE WHEN NEW.worst_tokens IS NULL THEN NEW.estimated_cost_usd ELSE NEW.worst_cost_usd END,
            NEW.worst_tokens IS NOT NULL
        );
    ELSE
        -- What is not known of a call that was cut is its worst case; of one that ended, what a budget counts.
        PERFORM tarsy.quota_settle(
            NEW.id, run.namespace, tarsy.quota_share(run),
            coalesce(
                NEW.input_tokens + NEW.output_tokens,
                CASE WHEN NEW.state <> 'interrupted' THEN NEW.estimated_tokens END
            ),
            coalesce(NEW.cost_usd, CASE WHEN NEW.state <> 'interrupted' AND NEW.input_tokens IS NULL
                THEN NEW.estimated_cost_usd END)
        );
    END IF;
    RETURN NULL;
END $$;

-- What keeps runs of a namespace from starting: the quota that has no room (NULL: each has), the strictest of several,
-- and how many more may start in each share of each quota.
CREATE FUNCTION quota_room(space text, class text, starting boolean) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    told jsonb;
BEGIN
    IF NOT EXISTS (SELECT FROM tarsy.quota WHERE namespace = space) THEN
        RETURN NULL;
    END IF;
    WITH room AS (
        SELECT q.*, u.share, u.starts_at, u.ends_at, p.percent, u.spent_usd + u.reserved_usd AS usd,
            u.spent_tokens + u.reserved_tokens AS used, u.investigations AS started,
            CASE
                WHEN starting AND u.investigations >= q.investigations * p.percent / 100 THEN 'investigations'
                WHEN u.spent_usd + u.reserved_usd + coalesce(u.refused_usd, 0) > q.cost_usd * p.percent / 100
                    OR u.spent_usd + u.reserved_usd >= q.cost_usd * p.percent / 100 THEN 'dollars'
                WHEN u.spent_tokens + u.reserved_tokens + coalesce(u.refused_tokens, 1) > q.tokens * p.percent / 100
                    THEN 'tokens'
            END AS reached
        FROM tarsy.quota q
        CROSS JOIN LATERAL (
            SELECT date_trunc(q.period, clock_timestamp() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' AS starts_at,
                (date_trunc(q.period, clock_timestamp() AT TIME ZONE 'UTC') + ('1 ' || q.period)::interval)
                    AT TIME ZONE 'UTC' AS ends_at
        ) now
        CROSS JOIN LATERAL (
            SELECT s.share, now.starts_at, now.ends_at, coalesce(v.spent_usd, 0) AS spent_usd,
                coalesce(v.reserved_usd, 0) AS reserved_usd, coalesce(v.spent_tokens, 0) AS spent_tokens,
                coalesce(v.reserved_tokens, 0) AS reserved_tokens, coalesce(v.investigations, 0) AS investigations,
                v.refused_usd, v.refused_tokens
            FROM (SELECT DISTINCT unnest(ARRAY['all', class]) AS share) s
            LEFT JOIN tarsy.quota_usage v ON v.quota = q.uid AND v.starts_at = now.starts_at AND v.share = s.share
        ) u
        CROSS JOIN LATERAL (SELECT tarsy.quota_percent(q, u.share) AS percent) p
        WHERE q.namespace = space
    )
    SELECT jsonb_build_object(
        'rooms', coalesce(
            (SELECT jsonb_object_agg(uid || '/' || share, investigations * percent / 100 - started) FROM room
                WHERE starting AND investigations IS NOT NULL), '{}'
        ),
        'over', (
            SELECT jsonb_build_object(
                'uid', uid, 'name', name, 'period', period, 'on_exceeded', on_exceeded, 'limit', reached, 'share', share,
                'starts_at', starts_at, 'ends_at', ends_at, 'need', NULL,
                'hard', CASE reached WHEN 'investigations' THEN investigations * percent / 100
                    WHEN 'dollars' THEN cost_usd * percent / 100 ELSE tokens * percent / 100 END,
                'used', CASE reached WHEN 'investigations' THEN started WHEN 'dollars' THEN usd ELSE used END
            )
            FROM room WHERE reached IS NOT NULL
            ORDER BY array_position(ARRAY['Reject', 'TriageOnly', 'Queue'], on_exceeded), ends_at DESC, uid, share
            LIMIT 1
        )
    ) INTO told;
    RETURN told;
END $$;

CREATE TRIGGER quota_run_started AFTER UPDATE OF started_at ON investigation FOR EACH ROW
    WHEN (OLD.started_at IS NULL AND NEW.started_at IS NOT NULL AND NEW.parent IS NULL AND NEW.triage_for IS NULL)
    EXECUTE FUNCTION quota_run_started();
CREATE TRIGGER quota_call_started AFTER INSERT ON llm_interaction FOR EACH ROW WHEN (NEW.state = 'started')
    EXECUTE FUNCTION quota_call_changed();
CREATE TRIGGER quota_call_ended AFTER UPDATE OF state ON llm_interaction FOR EACH ROW
    WHEN (OLD.state = 'started' AND NEW.state <> 'started')
    EXECUTE FUNCTION quota_call_changed();
