-- Version 3. Searches of the web, what logs say that calls cost, every model that a log names, and which call began
-- which sub-agent.

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
