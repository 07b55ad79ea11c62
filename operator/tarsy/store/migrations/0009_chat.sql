-- oldest reader: 4
-- A question about an investigation is answered by a run of its own, one after the other in the order of their places.
-- A run is for workers that know the plan it follows; code that does not know `reader` fails a question as unreadable.

ALTER TABLE investigation
    ADD COLUMN parent uuid REFERENCES investigation ON DELETE CASCADE,
    ADD COLUMN place integer,
    ADD COLUMN reader integer NOT NULL DEFAULT 4;
COMMENT ON COLUMN investigation.parent IS 'of an answer: the investigation that is asked about';
COMMENT ON COLUMN investigation.place IS 'of an answer: its turn among those to the same investigation, from 1';
COMMENT ON COLUMN investigation.reader IS 'the newest migration that the code knew which made the plan';

CREATE UNIQUE INDEX investigation_answers ON investigation (parent, place) WHERE parent IS NOT NULL;
