-- oldest reader: 4
-- plans: unchanged
-- What people see of a worker: when it was heard last, how much it takes, within which limits, whether it drains, and
-- its release. Code before this migration tells none of it: those columns stay NULL for its workers.

ALTER TABLE worker
    ADD COLUMN beat_at timestamptz,
    ADD COLUMN places integer,
    ADD COLUMN questions integer,
    ADD COLUMN global_limit integer,
    ADD COLUMN namespace_limit integer,
    ADD COLUMN draining boolean NOT NULL DEFAULT false,
    ADD COLUMN version text;
COMMENT ON COLUMN worker.beat_at IS 'when it renewed its leases last';
COMMENT ON COLUMN worker.places IS 'investigations that it runs at once';
COMMENT ON COLUMN worker.questions IS 'questions that it answers at once, beside them';
COMMENT ON COLUMN worker.global_limit IS 'investigations of the whole installation beyond which it claims none';
COMMENT ON COLUMN worker.namespace_limit IS 'investigations of one namespace beyond which it claims none; NULL: no limit';
COMMENT ON COLUMN worker.draining IS 'it stops: it claims nothing more and hands back what it has';
