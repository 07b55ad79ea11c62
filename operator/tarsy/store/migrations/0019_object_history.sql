-- oldest reader: 4
-- plans: unchanged
-- What changed in the namespaces that chose to have a history: versions of their objects, by day, and when they were not
-- watched. Code before this migration reads and writes none of it.

CREATE TABLE object_head (
    uid text PRIMARY KEY,
    namespace_uid text NOT NULL,
    namespace text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    seq bigint NOT NULL,
    digest bytea NOT NULL,
    key_id bytea NOT NULL,
    resource_version text NOT NULL,
    form bytea NOT NULL,
    changed_at timestamptz NOT NULL,
    noise text NOT NULL DEFAULT '',
    noise_since timestamptz,
    seen_at timestamptz
) WITH (fillfactor = 80);
COMMENT ON TABLE object_head IS 'the last recorded state of each object that exists';
COMMENT ON COLUMN object_head.digest IS 'keyed digest of the state; the key is not in the database';
COMMENT ON COLUMN object_head.seen_at IS 'when its last version was recorded; null: it has none';

CREATE INDEX object_head_kind ON object_head (namespace_uid, kind);

-- Partitions are made ahead and dropped by the recorder.
CREATE TABLE object_version (
    uid text NOT NULL,
    seq bigint NOT NULL,
    seen_at timestamptz NOT NULL,
    namespace_uid text NOT NULL,
    namespace text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    action text NOT NULL,
    type text NOT NULL,
    changed_at timestamptz NOT NULL,
    not_before timestamptz,
    last_at timestamptz NOT NULL,
    count integer NOT NULL,
    manager text NOT NULL,
    fields text[] NOT NULL,
    patch jsonb NOT NULL,
    snapshot bytea,
    bytes integer NOT NULL,
    PRIMARY KEY (uid, seq, seen_at)
) PARTITION BY RANGE (seen_at);
COMMENT ON TABLE object_version IS 'changes of objects, masked; one partition a day (UTC)';

CREATE INDEX object_version_time ON object_version (namespace_uid, seen_at);

CREATE TABLE object_history_size (
    namespace_uid text NOT NULL,
    day date NOT NULL,
    namespace text NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (namespace_uid, day)
) WITH (fillfactor = 60);
COMMENT ON TABLE object_history_size IS 'size of the versions of a namespace by day, for its limit';

CREATE TABLE object_watch (
    namespace_uid text NOT NULL,
    kind text NOT NULL,
    namespace text NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    state text NOT NULL,
    PRIMARY KEY (namespace_uid, kind)
) WITH (fillfactor = 60);
COMMENT ON TABLE object_watch IS 'from when, and until when, the objects of a kind in a namespace were watched';

CREATE TABLE object_unwatched (
    namespace_uid text NOT NULL,
    kind text NOT NULL,
    namespace text NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (namespace_uid, kind, since)
);
COMMENT ON TABLE object_unwatched IS 'windows in which the objects of a kind were not watched, or not all changes were recorded';

CREATE INDEX object_unwatched_until ON object_unwatched (until);
