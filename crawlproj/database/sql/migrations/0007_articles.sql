-- Articles: taken from pages by processes beside the crawl, a row each, with all addresses of the same article.
set local search_path = crawlproj;

alter table page add article text;

create table article_queue (
    page bigint primary key references url on delete cascade,
    crawl int not null references crawl on delete cascade,
    at timestamptz not null,
    charset text not null,
    body bytea,
    taken_by text,
    taken_until timestamptz,
    tries smallint not null default 0
);
create index article_queue_crawl on article_queue (crawl, at);
alter table article_queue alter body set storage external;

create table article (
    page bigint primary key references url on delete cascade,
    crawl int not null references crawl on delete cascade,
    site text not null,
    version int not null,
    at timestamptz not null,
    found_at timestamptz not null,
    changed_at timestamptz not null,
    title text,
    text text not null,
    date text,
    modified text,
    fields jsonb not null,
    title_key bigint,
    text_key bigint not null,
    sent int not null default 0
);
create index article_changed on article (crawl, changed_at, page);
create index article_title on article (title_key) where title_key is not null;
create index article_text on article (text_key);

create table article_address (
    page bigint primary key references url on delete cascade,
    article bigint not null references article on delete cascade
);
create index article_address_article on article_address (article);
