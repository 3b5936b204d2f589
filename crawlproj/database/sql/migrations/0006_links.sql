-- Further texts, titles and languages of links. Rows from before have none, and are not rewritten.
set local search_path = crawlproj;

alter table page_links add details text;

do $$
begin
    if exists (select from pg_settings where name = 'default_toast_compression' and 'lz4' = any (enumvals)) then
        alter table page_links alter details set compression lz4;
    else
        alter table page_links alter details set storage external;
    end if;
end $$;
