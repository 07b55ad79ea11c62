-- oldest reader: 4
-- plans: unchanged
-- Each step of a run is sealed: a digest of every row that it writes is chained to those of the steps before. Code before
-- this migration writes steps without a seal, whose rows are told as such.

ALTER TABLE investigation ADD COLUMN seal bytea;
COMMENT ON COLUMN investigation.seal IS 'head of the chain of sealed_step; NULL: nothing is sealed';

CREATE TABLE sealed_step (
    investigation uuid NOT NULL REFERENCES investigation ON DELETE CASCADE,
    revision bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    keys text[] NOT NULL,
    digests bytea[] NOT NULL,
    head bytea NOT NULL,
    PRIMARY KEY (investigation, revision)
);
COMMENT ON TABLE sealed_step IS 'the rows that a step wrote: key and SHA-256 of each, and the head of the chain after it';

CREATE TABLE erased_run (
    investigation uuid PRIMARY KEY,
    namespace text NOT NULL,
    namespace_uid text NOT NULL,
    name text NOT NULL,
    finished_at timestamptz,
    erased_at timestamptz NOT NULL DEFAULT now(),
    seal bytea
);
COMMENT ON TABLE erased_run IS 'what is left of a record that retention or an administrator deleted; kept for a year';
CREATE INDEX erased_run_name ON erased_run (namespace, name, erased_at DESC);
CREATE INDEX erased_run_age ON erased_run (erased_at);
