-- oldest reader: 4
-- plans: unchanged
-- Scores of investigations by the judges of suites, and what they cost by day. Code before this migration scores nothing.

CREATE TABLE scoring (
    suite uuid PRIMARY KEY,
    namespace_uid text NOT NULL,
    name text NOT NULL,
    judge text NOT NULL,
    since timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE scoring IS 'suites that score; an investigation that ended before `since` is scored on request only';
COMMENT ON COLUMN scoring.judge IS 'digest of the judge as it is now';

CREATE TABLE scoring_day (
    suite uuid NOT NULL,
    day date NOT NULL,
    tokens bigint NOT NULL,
    cost_usd numeric NOT NULL,
    PRIMARY KEY (suite, day)
) WITH (fillfactor = 60);
COMMENT ON TABLE scoring_day IS 'used and reserved in a day (UTC); it outlives the investigations, so that a budget holds';

CREATE TABLE score (
    investigation uuid NOT NULL REFERENCES investigation ON DELETE CASCADE,
    suite uuid NOT NULL,
    suite_name text NOT NULL,
    round integer NOT NULL,
    state text NOT NULL DEFAULT 'Waiting'
        CHECK (state IN ('Waiting', 'Started', 'Completed', 'Failed', 'Refused', 'Expired')),
    requested_by text,
    created_at timestamptz NOT NULL DEFAULT now(),
    again_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    judge text,
    attempts integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    interruptions integer NOT NULL DEFAULT 0,
    expires_at timestamptz,
    day date,
    reserved_tokens bigint NOT NULL DEFAULT 0,
    reserved_usd numeric NOT NULL DEFAULT 0,
    tokens bigint NOT NULL DEFAULT 0,
    cost_usd numeric,
    cost_complete boolean NOT NULL DEFAULT true,
    points integer CHECK (points BETWEEN 0 AND 100),
    answer jsonb,
    problem text,
    PRIMARY KEY (investigation, suite, round),
    CHECK ((state = 'Completed') = (points IS NOT NULL))
);
COMMENT ON TABLE score IS 'what judges say of the quality of investigations: advice that nothing else reads';
COMMENT ON COLUMN score.round IS '1: chosen by the suite; one more for each time that somebody asked';
COMMENT ON COLUMN score.expires_at IS 'a call that has not ended by then was interrupted';

CREATE UNIQUE INDEX score_open ON score (investigation, suite) WHERE state IN ('Waiting', 'Started');
CREATE INDEX score_waiting ON score (suite, again_at) WHERE state IN ('Waiting', 'Started');
CREATE INDEX score_suite ON score (suite, finished_at DESC);
