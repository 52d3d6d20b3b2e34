-- Version 1. Everything here is derived: it can be made again from the archive.

-- What is read: a file, or one session inside a database or a tree of files.
create table source (
    id integer primary key,
    -- The name of its manifest in the archive.
    key text not null unique,
    -- The agent, by the place the log was found in or by its content.
    agent text not null,
    -- How it reads; null when no adapter knew it.
    dialect text,
    -- The path, as the system has it.
    path blob not null,
    part text,
    -- What the file looked like when it was read. `stamp` stands for all that of a part.
    size integer not null,
    modified integer,
    inode integer,
    stamp text,
    -- When it was first seen to be modified: which of two copies is the original.
    first_modified integer,
    -- The version in the archive, and how many of its bytes were read.
    version integer not null,
    read_to integer not null,
    -- Where reading can go on; null when it has to begin anew.
    checkpoint blob,
    -- The adapters that read it.
    adapters integer not null,
    records integer not null,
    mapped integer not null,
    noted integer not null,
    blank integer not null,
    -- Why it could not be read, or not wholly.
    problem text
);
create index source_path on source (path);

create table transcript (
    id integer primary key,
    source integer not null unique references source (id) on delete cascade,
    run_id text not null unique,
    -- The run id that its own id stands for. Copies of a session share it.
    native text not null,
    agent text not null,
    agent_version text,
    title text,
    cwd text,
    branch text,
    repository text,
    commit_id text,
    parent text,
    parent_call text,
    forked_from text,
    -- The transcript that part of this one is a copy of, and how much.
    copy_of integer references transcript (id) on delete set null,
    copied_events integer not null default 0,
    -- All of it is a copy.
    duplicate integer not null default 0,
    reconstructed integer not null default 0,
    -- Milliseconds since 1970.
    started_at integer,
    ended_at integer,
    events integer not null,
    notes integer not null,
    prompts integer not null,
    replies integer not null,
    tool_calls integer not null,
    failures integer not null,
    denials integer not null,
    errors integer not null,
    compactions integer not null,
    attachments integer not null,
    dangling integer not null,
    orphans integer not null,
    -- Calls to models and their tokens, copies not counted.
    calls integer not null,
    input integer,
    cache_read integer,
    cache_write integer,
    output integer,
    reasoning integer,
    -- The vendor's own sums.
    vendor_input integer,
    vendor_cache_read integer,
    vendor_cache_write integer,
    vendor_output integer,
    vendor_reasoning integer,
    vendor_cost text,
    first_unit integer,
    units blob not null
);
create index transcript_native on transcript (native);
create index transcript_parent on transcript (parent);
create index transcript_copy on transcript (copy_of);
create index transcript_fork on transcript (forked_from);
create index transcript_unit on transcript (first_unit);
create index transcript_started on transcript (started_at);

create table model_use (
    transcript integer not null references transcript (id) on delete cascade,
    model text not null,
    calls integer not null,
    input integer,
    cache_read integer,
    cache_write integer,
    output integer,
    reasoning integer,
    primary key (transcript, model)
) without rowid;

create table tool_use (
    transcript integer not null references transcript (id) on delete cascade,
    tool text not null,
    calls integer not null,
    primary key (transcript, tool)
) without rowid;

-- The blobs that a transcript refers to.
create table blob_use (
    transcript integer not null references transcript (id) on delete cascade,
    blob text not null,
    primary key (transcript, blob)
) without rowid;
create index blob_use_blob on blob_use (blob);

create table dropped (
    source integer not null references source (id) on delete cascade,
    reason text not null,
    records integer not null,
    primary key (source, reason)
) without rowid;

create table mended (
    source integer not null references source (id) on delete cascade,
    what text not null,
    records integer not null,
    primary key (source, what)
) without rowid;

create table drift (
    source integer not null references source (id) on delete cascade,
    name text not null,
    sightings integer not null,
    byte_offset integer not null,
    line integer not null,
    primary key (source, name)
) without rowid;
