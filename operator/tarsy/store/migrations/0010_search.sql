-- oldest reader: 4
-- What lists of investigations read: by time over all namespaces, by author, and by words.

-- The words of name, alert, finding and summary. They stand beside the time, so that what is rare is looked up and what
-- is common is met on the way back through time; Postgres decides by how often a word is there. Triggers keep them,
-- whatever code writes the record: when a run is accepted, and when it ends. No step in between costs anything.
CREATE TABLE investigation_words (
    investigation uuid PRIMARY KEY REFERENCES investigation ON DELETE CASCADE,
    accepted_at timestamptz NOT NULL,
    words tsvector NOT NULL
);

-- Of no language: what is no letter and no digit parts words. As `search.py` reads those that are looked for.
CREATE FUNCTION words(content text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.to_tsvector('pg_catalog.simple', pg_catalog.translate(
        pg_catalog.left(content, 32768), $q$!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~$q$, '                                '))
$$;

CREATE FUNCTION words_told(run investigation) RETURNS tsvector LANGUAGE sql STABLE AS $$
    SELECT tarsy.words(coalesce(run.finding->>'summary', '') || ' ' || coalesce(run.executive_summary, '')
        || ' ' || coalesce(run.final_analysis, ''))
$$;

-- Before anything is locked: of the newest records there are. Older ones are found by all but their words.
INSERT INTO investigation_words (investigation, accepted_at, words)
SELECT i.id, i.accepted_at, words(i.name || ' ' || i.alert_type || ' ' || i.chain) || words(n.alert_data) || words_told(i)
FROM investigation i JOIN investigation_input n ON n.investigation = i.id
WHERE i.id IN (SELECT id FROM investigation WHERE parent IS NULL ORDER BY accepted_at DESC LIMIT 20000);

CREATE INDEX investigation_words_time ON investigation_words (accepted_at DESC, investigation DESC);
CREATE INDEX investigation_words_found ON investigation_words USING gin (words) WITH (gin_pending_list_limit = 256);
ANALYZE investigation_words;

CREATE FUNCTION words_accepted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tarsy.investigation_words (investigation, accepted_at, words)
    SELECT i.id, i.accepted_at,
        tarsy.words(i.name || ' ' || i.alert_type || ' ' || i.chain) || tarsy.words(NEW.alert_data)
    FROM tarsy.investigation i WHERE i.id = NEW.investigation AND i.parent IS NULL
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE FUNCTION words_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tarsy.investigation_words SET words = words || tarsy.words_told(NEW) WHERE investigation = NEW.id;
    RETURN NULL;
END $$;

CREATE INDEX investigation_accepted ON investigation (accepted_at DESC, id DESC) WHERE parent IS NULL;
CREATE INDEX investigation_author ON investigation_input ((author->>'username'));

CREATE TRIGGER words_accepted AFTER INSERT ON investigation_input
    FOR EACH ROW EXECUTE FUNCTION words_accepted();
CREATE TRIGGER words_ended AFTER UPDATE OF final_analysis ON investigation
    FOR EACH ROW WHEN (NEW.parent IS NULL AND OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL)
    EXECUTE FUNCTION words_ended();

-- What was written since this began, while the triggers were not there yet.
INSERT INTO investigation_words (investigation, accepted_at, words)
SELECT i.id, i.accepted_at, words(i.name || ' ' || i.alert_type || ' ' || i.chain) || words(n.alert_data) || words_told(i)
FROM investigation i JOIN investigation_input n ON n.investigation = i.id
WHERE i.parent IS NULL AND (i.accepted_at >= now() OR i.finished_at >= now())
ON CONFLICT (investigation) DO UPDATE SET words = excluded.words;
