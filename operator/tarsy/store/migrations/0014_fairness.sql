-- oldest reader: 4
-- Fairness between namespaces: when each was served last. An incident may be known by a key of its sender's own.

CREATE TABLE namespace_turn (
    namespace text NOT NULL,
    questions boolean NOT NULL,
    claimed_at timestamptz NOT NULL,
    PRIMARY KEY (namespace, questions)
) WITH (fillfactor = 60);
COMMENT ON TABLE namespace_turn IS 'when a run, or an answer, of a namespace was claimed last: of equals the one that waited longest goes first';

CREATE INDEX investigation_questions ON investigation (namespace, accepted_at, id)
    WHERE state IN ('pending', 'running') AND parent IS NOT NULL;

ALTER TABLE incident ADD COLUMN incident_key text;
COMMENT ON COLUMN incident.incident_key IS 'spec.incidentKey of its Alert: equal keys in a namespace are one incident, however their Alerts came';
CREATE INDEX incident_keyed ON incident (namespace, incident_key, opened_at DESC) WHERE incident_key IS NOT NULL;
