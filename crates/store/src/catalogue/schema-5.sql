-- Version 5. Transcripts that others submitted, and who they came from; null for one's own. What is asked for by this is a
-- few of many.

alter table transcript add column received_from text;
alter table transcript add column received_key text;
create index transcript_received on transcript (received_from) where received_from is not null;

delete from seal;
