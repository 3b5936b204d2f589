-- The text of each page is kept, and compared with those of all others: which page is a copy of which.
set local search_path = crawlproj;

alter table page rename language to declared_language;
do $$
begin
    -- Since version 18 these have names.
    if exists (select from pg_constraint where conrelid = 'crawlproj.page'::regclass and conname = 'page_language_not_null') then
        alter table crawlproj.page rename constraint page_language_not_null to page_declared_language_not_null;
    end if;
end $$;
alter table page add kind text not null default '', add reader text not null default '', add reader_version smallint not null default 0,
    add language text not null default '', add words int not null default 0, add canonical_page bigint, add duplicate_of bigint,
    add duplicate_kind text, add similarity real, add known_share real, add noted bool not null default true;
create index page_duplicate on page (duplicate_of) where duplicate_of is not null;
create index page_unnoted on page (url) where not noted;
alter table page_version add known_share real;

create table page_text (
    url bigint primary key references url on delete cascade,
    blocks bytea not null
);
alter table page_text alter blocks set storage external;

create table exact (
    page bigint primary key references url on delete cascade,
    body bigint not null,
    text bigint
);
create index exact_body on exact (body);
create index exact_text on exact (text) where text is not null;

create table band (
    page bigint primary key references url on delete cascade,
    h1 bigint not null,
    h2 bigint not null,
    h3 bigint not null,
    h4 bigint not null,
    h5 bigint not null,
    h6 bigint not null,
    h7 bigint not null,
    h8 bigint not null
);
create index band_h1 on band (h1);
create index band_h2 on band (h2);
create index band_h3 on band (h3);
create index band_h4 on band (h4);
create index band_h5 on band (h5);
create index band_h6 on band (h6);
create index band_h7 on band (h7);
create index band_h8 on band (h8);

create table paragraph (
    hash bigint not null,
    host int not null,
    page bigint not null,
    number smallint not null,
    primary key (hash, host)
);

create table cluster (
    original bigint primary key references url on delete cascade,
    kept bigint not null,
    named bool not null default false
);

create table unjudged (
    page bigint primary key references url on delete cascade
);

alter table crawl add duplicate_scheme text;
