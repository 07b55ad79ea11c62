-- oldest reader: 4
-- plans: unchanged
-- What finished investigations are found by as precedents, and the precedents that a run was told about. Plans of chains
-- with spec.precedents have a field that older code refuses, so it leaves their runs to newer workers. Code before this
-- migration writes no keys of incidents and workloads: its runs are found by words and by the objects that they blame.

CREATE TABLE precedent_key (
    investigation uuid NOT NULL REFERENCES investigation ON DELETE CASCADE,
    namespace_uid text NOT NULL,
    key text NOT NULL,
    accepted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (investigation, key)
);
COMMENT ON TABLE precedent_key IS
    'what a run is about: incident:KEY, workload:ALERT_TYPE/NAME, and object:KIND/NAME of what its finding blames';
CREATE INDEX precedent_key_found ON precedent_key (namespace_uid, key, accepted_at DESC);

ALTER TABLE investigation_input ADD COLUMN precedents jsonb;
COMMENT ON COLUMN investigation_input.precedents IS
    'earlier investigations that the run was told about (tarsy.record.precedent); null: none';

-- The objects that supported claims and their quotes name as KIND/NAME.
CREATE FUNCTION blamed_objects(finding jsonb) RETURNS SETOF text LANGUAGE sql IMMUTABLE AS $$
    SELECT DISTINCT 'object:' || told[1]
    FROM jsonb_array_elements(CASE jsonb_typeof(finding->'claims') WHEN 'array' THEN finding->'claims' ELSE '[]' END) claim,
        regexp_matches(
            left(coalesce(claim->>'text', '') || ' ' || coalesce(claim->>'citations', ''), 16384),
            '\m([A-Z][A-Za-z]{2,62}/[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)', 'g'
        ) told
    WHERE claim->>'supported' = 'true'
    LIMIT 20
$$;

CREATE FUNCTION precedent_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tarsy.precedent_key (investigation, namespace_uid, key, accepted_at)
    SELECT NEW.id, NEW.namespace_uid, told, NEW.accepted_at FROM tarsy.blamed_objects(NEW.finding) told
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

INSERT INTO precedent_key (investigation, namespace_uid, key, accepted_at)
SELECT i.id, i.namespace_uid, told, i.accepted_at
FROM investigation i, blamed_objects(i.finding) told
WHERE i.id IN (
    SELECT id FROM investigation
    WHERE parent IS NULL AND NOT replay AND finding IS NOT NULL ORDER BY accepted_at DESC LIMIT 20000
);

CREATE TRIGGER precedent_ended AFTER UPDATE OF finding ON investigation
    FOR EACH ROW WHEN (
        NEW.parent IS NULL AND NOT NEW.replay AND OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL
        AND NEW.finding IS NOT NULL
    )
    EXECUTE FUNCTION precedent_ended();
ANALYZE precedent_key;
