-- Version 3. What the catalogue and the archive are checked against each other by; searches of the web, what logs say
-- that calls cost, every model that a log names, and which call began which sub-agent.

-- How long the manifest in the archive was when the log was read; null where that is not known.
alter table source add column manifest integer;

-- A sum over everything that is known of a log, so that damage does not go unnoticed. It is not there while
-- something has changed since it was made. A migration that changes a table has to empty this one.
create table seal (
    source integer primary key references source (id) on delete cascade,
    sum integer not null
);
create trigger source_breaks_seal after update on source begin
    delete from seal where source = new.id;
end;
create trigger transcript_breaks_seal after insert on transcript begin
    delete from seal where source = new.source;
end;
create trigger transcript_change_breaks_seal after update on transcript begin
    delete from seal where source = new.source;
end;
create trigger transcript_loss_breaks_seal after delete on transcript begin
    delete from seal where source = old.source;
end;

-- Searches that are paid for beside the tokens.
alter table spend add column searches integer not null default 0;
-- What the calls cost by the log's own word, as a decimal number of dollars; null where it does not say.
alter table spend add column told text;

-- Models that a transcript names, whether its log tells of their tokens or not. Of copies as well.
create table model_named (
    transcript integer not null references transcript (id) on delete cascade,
    model text not null,
    primary key (transcript, model)
) without rowid;
insert into model_named
    select distinct transcript, model from spend where model <> '';

-- The calls that began the sessions of sub-agents, which their own logs may not tell.
create table spawned (
    transcript integer not null references transcript (id) on delete cascade,
    -- The id that the session of the sub-agent is known by (`transcript.native`).
    child text not null,
    call text not null,
    primary key (transcript, child)
) without rowid;
create index spawned_child on spawned (child);
