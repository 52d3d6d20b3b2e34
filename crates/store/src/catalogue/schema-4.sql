-- Version 4. Every command asks which logs are known and which of them lie where they were written. Rows of `source` are
-- long, because of checkpoints; these are answered without them.

create index source_known on source (
    key, agent, dialect, path, part, size, modified, inode, stamp, adapters, problem, version, read_to, manifest
);
create index source_in_place on source (key) where version = 0 and part is null;
