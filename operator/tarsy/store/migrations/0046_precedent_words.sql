-- oldest reader: 4
-- plans: unchanged
-- Precedents are found by the words of one namespace at a time: beside the words of a run stands the uid of its namespace,
-- once it has ended with a finding that can be a precedent. A trigger writes it, whatever code ends the run.

ALTER TABLE investigation_words ADD COLUMN precedent_of text;
COMMENT ON COLUMN investigation_words.precedent_of IS
    'uid of the namespace in which the run is a precedent; null: it is none, or has not ended';

CREATE FUNCTION precedent_namespace(run investigation) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN run.parent IS NULL AND NOT run.replay AND run.state = 'completed'
        AND run.finding->>'confidence' IN ('High', 'Medium', 'Low') THEN run.namespace_uid END
$$;

-- The index is built anew below, for the words as before and for words of some namespaces.
DROP INDEX investigation_words_found;

CREATE OR REPLACE FUNCTION words_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tarsy.investigation_words SET words = words || tarsy.words_told(NEW), precedent_of = tarsy.precedent_namespace(NEW)
    WHERE investigation = NEW.id;
    RETURN NULL;
END $$;

UPDATE investigation_words w SET precedent_of = precedent_namespace(i)
FROM investigation i WHERE i.id = w.investigation AND precedent_namespace(i) IS NOT NULL;

CREATE INDEX investigation_words_found ON investigation_words USING gin (words, (ARRAY[precedent_of]))
    WITH (gin_pending_list_limit = 256);
CREATE INDEX investigation_words_precedent ON investigation_words (precedent_of, accepted_at DESC)
    WHERE precedent_of IS NOT NULL;
ANALYZE investigation_words;
