-- The database itself: its clock, its plans, its migrations.
-- Asked by crawlproj/database/migrations.py, `now` by everybody.

-- name: now
-- The time by the database's clock, which all workers share; asked wherever a time is stored or compared.
select clock_timestamp();

-- name: foreign_clients
-- How many connections are those of other programs; asked by whoever is about to stop the embedded server.
select count(*) from pg_stat_activity
where backend_type = 'client backend' and pid <> pg_backend_pid() and application_name not like 'crawlproj%%';

-- name: discard
-- Has the plans of prepared statements made anew; asked by the frontier while its tables grow fast.
discard plans;

-- name: migration_lock
-- Lets one process migrate at a time, until the end of its transaction; the first thing in migrate.
-- Two workers that start at once: one migrates, the other waits and finds nothing to do. The number is ours alone.
select pg_advisory_xact_lock(7240515);

-- name: migration_table
-- Are there any tables of ours? Asked by migrate, and by commands before they look.
select to_regclass('crawlproj.migration') is not null;

-- name: migration_applied
-- The numbers of the migrations that were applied; asked by migrate, to know which are missing.
select number from crawlproj.migration order by number;

-- name: migration_mark
-- Notes a migration as applied; the last thing in migrate.
insert into crawlproj.migration (number, name, applied) values (%(number)s, %(name)s, now());
