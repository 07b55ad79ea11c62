-- oldest reader: 4
-- Limits of model providers, shared by all workers, and the model calls that count for them or wait for their turn.
-- A provider is the uid of its object. Calls stay for a minute after they count no more; a run's calls count while its
-- lease holds.

CREATE TABLE provider_limit (
    provider text PRIMARY KEY,
    generation bigint NOT NULL,
    max_concurrent integer,
    requests_per_minute integer,
    tokens_per_minute bigint
) WITH (fillfactor = 60);
COMMENT ON TABLE provider_limit IS 'as the newest generation of the object has them; NULL is no limit';

CREATE TABLE provider_call (
    id uuid PRIMARY KEY,
    provider text NOT NULL,
    place bigint GENERATED ALWAYS AS IDENTITY,
    investigation uuid NOT NULL REFERENCES investigation ON DELETE CASCADE,
    attempt integer NOT NULL,
    tokens bigint NOT NULL,
    excess bigint NOT NULL DEFAULT 0,
    admitted_at timestamptz,
    finished_at timestamptz
) WITH (fillfactor = 60);
COMMENT ON COLUMN provider_call.tokens IS 'as expected, or fewer when fewer were used; they count from admitted_at on';
COMMENT ON COLUMN provider_call.excess IS 'tokens used beyond those expected; they count from finished_at on';
CREATE INDEX provider_call_line ON provider_call (provider, place);

-- What the status tells of changes of provider. Closing an event stays a HOT update, but for the one of each agent whose
-- type changes with it: the response that turns out to be the final analysis.
CREATE INDEX timeline_event_fallback ON timeline_event (investigation) WHERE type = 'provider_fallback';
