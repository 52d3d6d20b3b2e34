-- The tables of the specification, exactly: other programs may read them.
create table if not exists traces (
    id text primary key,
    -- Milliseconds since 1970.
    created_at integer not null,
    session_tag text,
    root_record_id text not null
);
create index if not exists idx_traces_session_tag on traces (session_tag);
create index if not exists idx_traces_created_at on traces (created_at);
create table if not exists tags (
    trace_id text not null references traces (id) on delete cascade,
    key text not null,
    value text not null,
    primary key (trace_id, key)
);
create index if not exists idx_tags_key_value on tags (key, value);
create table if not exists replays (
    id text primary key,
    baseline_trace_id text not null references traces (id) on delete cascade,
    config_hash text,
    outcome_record_id text,
    created_at integer
);
create index if not exists idx_replays_baseline on replays (baseline_trace_id);
create index if not exists idx_replays_config on replays (config_hash);

-- What those have no room for. Two files may have the same trace id.
create table if not exists quipu_files (
    id integer primary key,
    trace_id text not null references traces (id) on delete cascade,
    -- Below the directory of traces.
    path text not null unique,
    size integer not null,
    -- Nanoseconds since 1970.
    modified integer not null,
    sha256 text not null,
    records integer not null,
    bad_lines integer not null,
    wrong_ids integer not null,
    first_wrong integer,
    -- Whether the first record is a root, with the id that the file is named by and its payload has.
    is_rooted integer not null,
    created_at integer not null,
    session_tag text,
    first_ts integer,
    last_ts integer,
    left_out integer not null,
    blobs_left_out integer not null
);
create index if not exists quipu_files_trace on quipu_files (trace_id);
create index if not exists quipu_files_created on quipu_files (created_at);

-- Kinds of records, models and tools, each with how often.
create table if not exists quipu_counts (
    file integer not null references quipu_files (id) on delete cascade,
    what text not null,
    name text not null,
    n integer not null,
    primary key (file, what, name)
) without rowid;
create index if not exists quipu_counts_name on quipu_counts (what, name);

-- Session tags of all session markers, and what `meta.trace_id` says.
create table if not exists quipu_marks (
    file integer not null references quipu_files (id) on delete cascade,
    what text not null,
    value text not null,
    primary key (file, what, value)
) without rowid;
create index if not exists quipu_marks_value on quipu_marks (what, value);

-- What a trace is a replay of, whether that is kept or not.
create table if not exists quipu_replays (
    file integer not null references quipu_files (id) on delete cascade,
    baseline text not null,
    outcome text,
    at integer
);
create index if not exists quipu_replays_baseline on quipu_replays (baseline);

-- The blobs that a trace may refer to, with what its blob_ref says.
create table if not exists quipu_blob_use (
    file integer not null references quipu_files (id) on delete cascade,
    blob text not null,
    mime text,
    size integer,
    phash integer,
    primary key (file, blob)
) without rowid;
create index if not exists quipu_blob_use_blob on quipu_blob_use (blob);

-- The blobs that are here, and what was found by looking at them.
create table if not exists quipu_blobs (
    blob text primary key,
    size integer not null,
    mime text not null,
    phash integer
) without rowid;
