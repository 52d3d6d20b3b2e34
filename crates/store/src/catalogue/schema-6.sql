-- Version 6. What was added to transcripts, in the order in which it became known: what somebody who follows everything has
-- yet to be told.

-- Events in a row that became known together. Each event has a place, counted over all transcripts from 1 on, so that
-- a follower who has had some of them can go on behind those.
create table advance (
    id integer primary key,
    -- The places of the first and the last event.
    first integer not null,
    last integer not null,
    -- The name of the manifest of the log.
    key text not null,
    from_seq integer not null,
    to_seq integer not null,
    -- 0: these were added. 1: all from the first of these on are other ones than before. 2: the transcript is gone.
    kind integer not null
);
create unique index advance_last on advance (last);

-- How many events of each log were told of.
create table reach (
    key text primary key,
    last integer not null
) without rowid;
insert into reach
    select s.key, t.events + t.notes from transcript t join source s on s.id = t.source where true
    on conflict (key) do nothing;

create trigger source_is_gone before delete on source
when exists (select 1 from transcript where source = old.id) begin
    delete from reach where key = old.key;
    insert into advance (first, last, key, from_seq, to_seq, kind)
        select coalesce(max(last), 0) + 1, coalesce(max(last), 0) + 1, old.key, 0, 0, 2 from advance;
end;

-- Places of a catalogue that was made again mean nothing in this one.
insert into meta values ('advances', lower(hex(randomblob(6))));
