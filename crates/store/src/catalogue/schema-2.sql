-- Version 2. Spending and activity by the quarter of an hour, and passes for the search index.
--
-- A slot is a quarter of an hour since 1970; null where the log has no times. The offset of every time zone
-- in use is a multiple of it, and prices change at midnight UTC: so days are exact wherever they are counted.

alter table transcript add column cache_write_1h integer;

-- The tokens of calls to models, copies not counted.
create table spend (
    transcript integer not null references transcript (id) on delete cascade,
    slot integer,
    -- Empty where the log does not name it.
    model text not null,
    -- The sub-agent that made the calls, where it shares the log with others.
    subagent text not null,
    -- See quipu_model::Service; the number is its place among all of them.
    service integer not null,
    -- The class of the length of the prompt, where longer prompts have prices of their own.
    context integer not null,
    calls integer not null,
    input integer,
    cache_read integer,
    cache_write integer,
    cache_write_1h integer,
    output integer,
    reasoning integer
);
create index spend_transcript on spend (transcript);

-- What was done, copies not counted.
create table activity (
    transcript integer not null references transcript (id) on delete cascade,
    slot integer,
    subagent text not null,
    prompts integer not null,
    replies integer not null,
    tool_calls integer not null,
    failures integer not null,
    denials integer not null,
    active_ms integer not null
);
create index activity_transcript on activity (transcript);

-- Tokens that need not have been paid for; see docs/stats.md.
create table waste (
    transcript integer not null references transcript (id) on delete cascade,
    slot integer,
    kind integer not null,
    model text not null,
    service integer not null,
    context integer not null,
    times integer not null,
    input integer,
    cache_read integer,
    cache_write integer,
    cache_write_1h integer,
    output integer,
    reasoning integer
);
create index waste_transcript on waste (transcript);

-- What is known of logs that were read before: when each call was made is not, so all of it is put to the
-- beginning of the session until the log is read again.
insert into spend (transcript, slot, model, subagent, service, context, calls, input, cache_read,
        cache_write, output, reasoning)
    select m.transcript, t.started_at / 900000, m.model, '', 0, 0, m.calls, m.input, m.cache_read,
        m.cache_write, m.output, m.reasoning
    from model_use m join transcript t on t.id = m.transcript;
insert into activity
    select id, started_at / 900000, '', prompts, replies, tool_calls, failures, denials, 0
    from transcript where not duplicate;
drop table model_use;

alter table tool_use rename to tool_use_1;
create table tool_use (
    transcript integer not null references transcript (id) on delete cascade,
    slot integer,
    subagent text not null,
    tool text not null,
    calls integer not null,
    failures integer not null
);
create index tool_use_transcript on tool_use (transcript);
insert into tool_use
    select u.transcript, t.started_at / 900000, '', u.tool, u.calls, 0
    from tool_use_1 u join transcript t on t.id = u.transcript;
drop table tool_use_1;

-- Passes over logs, whose events are in the search index under the same number.
create table pass (
    id integer primary key,
    source integer not null references source (id) on delete cascade,
    -- Whether it only tells of the end of the log as it was, and is replaced when the log goes on.
    provisional integer not null,
    -- Whether all of it is in the index.
    live integer not null default 0
);
create index pass_source on pass (source, live);

-- Passes that are to be taken out of the search index.
create table dead_pass (
    id integer primary key
);
create trigger pass_dies after delete on pass begin
    insert or ignore into dead_pass values (old.id);
end;

create table meta (
    name text primary key,
    value text not null
) without rowid;
