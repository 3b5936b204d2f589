-- A stand-in: another migration of this number brings this column, and more.
set local search_path = crawlproj;
alter table url add column source bool not null default false;
