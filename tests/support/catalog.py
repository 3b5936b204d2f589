"""What Postgres knows of our schema, as plain values that can be compared."""

from __future__ import annotations

from typing import Any

from crawlproj.database.queries import Queries

PARTS = {
    "tables": """
        select c.relname, c.relkind::text, c.relpersistence::text, c.reloptions
        from pg_class c where c.relnamespace = 'crawlproj'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'S')""",
    # By name, not by position: a migration can only add at the end.
    "columns": """
        select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity::text,
            a.attgenerated::text, a.attstorage::text, a.attcompression::text, a.attstattarget,
            pg_get_expr(d.adbin, d.adrelid)
        from pg_attribute a join pg_class c on c.oid = a.attrelid
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where c.relnamespace = 'crawlproj'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
            and a.attnum > 0 and not a.attisdropped""",
    "indexes": """
        select c.relname, pg_get_indexdef(i.indexrelid), i.indisvalid, i.indisunique, c.reloptions
        from pg_index i join pg_class c on c.oid = i.indexrelid where c.relnamespace = 'crawlproj'::regnamespace""",
    "constraints": """
        select conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated
        from pg_constraint where connamespace = 'crawlproj'::regnamespace""",
    "types": """
        select t.typname, t.typtype::text, array_agg(e.enumlabel::text order by e.enumsortorder)
        from pg_type t left join pg_enum e on e.enumtypid = t.oid
        where t.typnamespace = 'crawlproj'::regnamespace and t.typtype in ('e', 'd', 'r') group by 1, 2""",
    "functions": """
        select p.oid::regprocedure::text, pg_get_functiondef(p.oid)
        from pg_proc p where p.pronamespace = 'crawlproj'::regnamespace and p.prokind in ('f', 'p')""",
    "triggers": """
        select t.tgname, pg_get_triggerdef(t.oid) from pg_trigger t join pg_class c on c.oid = t.tgrelid
        where c.relnamespace = 'crawlproj'::regnamespace and not t.tgisinternal""",
    "views": """
        select c.relname, pg_get_viewdef(c.oid) from pg_class c
        where c.relnamespace = 'crawlproj'::regnamespace and c.relkind in ('v', 'm')""",
}


def catalog(db: Queries) -> dict[str, list[tuple[Any, ...]]]:
    """Tables, columns, types, defaults, indexes, constraints and the rest, each sorted: equal
    schemas, equal dicts.
    """
    return {part: sorted(db.run_script(sql), key=repr) for part, sql in PARTS.items()}
