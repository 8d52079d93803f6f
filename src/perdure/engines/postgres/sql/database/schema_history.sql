-- name: history_exists
SELECT to_regclass('{migration}') IS NOT NULL;

-- name: history
SELECT number, release, checksum FROM {migration};

-- name: why_read_only
SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only')::boolean;

-- name: lock
SELECT pg_advisory_xact_lock(hashtextextended(%(who)s, 0));

-- name: schema_exists
SELECT to_regnamespace(%(schema)s) IS NOT NULL;

-- name: create_history
CREATE TABLE IF NOT EXISTS {migration} (
    number integer PRIMARY KEY,
    name text NOT NULL,
    release integer NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- name: record
INSERT INTO {migration} (number, name, release, checksum)
VALUES (%(number)s, %(name)s, %(release)s, %(checksum)s);

-- name: describe
-- Every table, column, default, constraint, index and trigger of ours, one per line, without the schema's name and the prefix.
SELECT what FROM (
    SELECT format('table %%s %%s %%s', c.relname, c.relkind, coalesce(c.reloptions::text, '')) AS what, c.relname
    FROM pg_class c WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind IN ('r', 'S')
    UNION ALL
    SELECT format('column %%s.%%s %%s %%s %%s %%s%%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                  CASE WHEN a.attnotnull THEN 'not null' ELSE 'null' END, coalesce(l.collname, ''), a.attidentity,
                  pg_get_expr(d.adbin, d.adrelid)), c.relname
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    LEFT JOIN pg_collation l ON l.oid = a.attcollation
    WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind = 'r'
    UNION ALL
    SELECT 'index ' || pg_get_indexdef(i.indexrelid), c.relname
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = %(schema)s::regnamespace
    UNION ALL
    SELECT format('constraint %%s %%s', c.relname, pg_get_constraintdef(k.oid)), c.relname
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
    WHERE c.relnamespace = %(schema)s::regnamespace AND k.contype <> 'n'
    UNION ALL
    SELECT pg_get_triggerdef(t.oid), c.relname
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = %(schema)s::regnamespace AND NOT t.tgisinternal
) all_of_it
WHERE starts_with(relname, %(prefix)s)
ORDER BY what COLLATE "C";
