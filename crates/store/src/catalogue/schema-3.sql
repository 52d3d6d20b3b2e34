-- Version 3. What the catalogue and the archive are checked against each other by.

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
