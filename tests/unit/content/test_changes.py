from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlproj.content.changes import (
    Change,
    ChangeKind,
    ChangeRules,
    Judgement,
    MaskReason,
    judge_change,
)
from crawlproj.content.document import Block
from crawlproj.content.host_noise import MAX_NOISE, NO_NOISE, HostNoise, learn_noise, unpack_noise
from crawlproj.content.html import parse_page
from crawlproj.content.page_blocks import find_blocks
from crawlproj.content.page_state import MAX_STATE, unpack_state
from crawlproj.content.relative_times import is_relative_time

URL = "http://a.test/page"
STORY = [f"Paragraph {number} tells one thing at some length, then stops." for number in range(12)]


def page(
    story: Sequence[str] = STORY, above: str = "", below: str = "", foot: str = "", tag: str = "p"
) -> str:
    paragraphs = "".join(f"<{tag}>{text}</{tag}>" for text in story)
    return (
        f"<html><nav><a href=/>Home</a></nav><main><h1>Title</h1>{above}{paragraphs}</main>"
        f"{below}<footer>{foot}</footer>"
    )


def follow(
    pages: Sequence[str], rules: ChangeRules | None = None, host: HostNoise = NO_NOISE
) -> list[Judgement]:
    """The judgements on all captures but the first."""
    state = None
    found = []
    for text in pages:
        blocks = parse_page(text.encode("utf-8", "surrogatepass"), URL, "utf-8").blocks
        judged = judge_change(blocks, state, URL, host, rules or ChangeRules())
        assert len(judged.state) <= MAX_STATE
        state = judged.state
        found.append(judged)
    assert found[0].first and not found[0].change.changed
    return found[1:]


def last(*pages: str, rules: ChangeRules | None = None) -> Change:
    return follow(pages, rules)[-1].change


def test_tokens_of_programs_are_no_change_and_numbers_are() -> None:
    def with_line(line: str) -> str:
        return page(above=f"<p>{line}</p>")

    for before, after in (
        ("Trace: 5a5abc1834eb91ab7262be2dde7a01a7", "Trace: c98104dbad0155535bb53f8c029aa56a"),
        ("Id 2b1e7c9a-12fe-4d3a-9b7c-0f1e2d3c4b5a", "Id 9f8e7d6c-5b4a-4321-8fed-a0b1c2d3e4f5"),
    ):
        assert not last(with_line(before), with_line(after)).changed
    for before, after in (
        ("Call 0800 1234567890123456 on Monday", "Call 0800 6543210987654321 on Monday"),
        ("It was a bad deed, all agreed", "It was a facade, all agreed too"),
        ("Trace: 5a5abc1834eb91ab7262be2dde7a01a7", "It has no trace any more, says he"),
    ):
        assert last(with_line(before), with_line(after)).changed


def reasons(change: Change) -> set[MaskReason]:
    return {mask.reason for mask in change.masked}


def test_first_visit_is_no_change_and_leaves_a_state() -> None:
    judged = judge_change(parse_page(page().encode(), URL).blocks, None, URL)
    assert judged.first and judged.state and judged.change == Change(False, ChangeKind.NONE)


def test_new_text_edit_and_deletion_are_told_apart_with_their_letters() -> None:
    new = "A fresh paragraph arrives here."
    assert last(page(), page([*STORY, new])) == Change(True, ChangeKind.NEW_TEXT, 26, 0)
    deleted = last(page(), page(STORY[:-1]))
    assert deleted == Change(True, ChangeKind.DELETION, 0, 43)
    edited = last(page(), page([STORY[0].replace("thing", "word"), *STORY[1:]]))
    assert edited == Change(True, ChangeKind.EDIT, 42, 43)


def test_clock_in_the_footer_is_boilerplate() -> None:
    change = last(page(foot="It is 12:30 on Monday"), page(foot="It is 12:31 on Tuesday"))
    assert not change.changed and change.kind is ChangeKind.NONE
    assert reasons(change) == {MaskReason.BOILERPLATE}


@pytest.mark.parametrize(
    "box",
    [
        "<header>{}</header>",
        "<aside>{}</aside>",
        "<dialog open>{}</dialog>",
        "<div role=complementary>{}</div>",
        "<div class=x role=Banner><p>{}</div>",
        "<div><a href=/1>{}</a></div>",
    ],
)
def test_what_is_outside_of_the_content_does_not_count(box: str) -> None:
    pages = [page(below=box.format(text)) for text in ("one advert for you", "another of them")]
    assert not last(*pages).changed
    assert last(*[text.replace("</main>", "") for text in pages]).changed is (
        "<header>" in box or "<a " in box  # now they are in main
    )


def test_words_outside_of_all_landmarks_count() -> None:
    assert last(page(below="<div>one notice</div>"), page(below="<div>other notes</div>")).changed


def test_relative_times_do_not_count() -> None:
    change = last(*[page(above=f"<span>Updated {n} days ago</span>") for n in (4, 5)])
    assert not change.changed and reasons(change) == {MaskReason.RELATIVE_TIME}
    assert is_relative_time("vor 4 Tagen") and is_relative_time("4 天前")
    assert not is_relative_time("We opened 4 shops in the last days, more than years ago")


def test_advert_that_comes_anew_each_time_becomes_noise() -> None:
    adverts = [f"<div class=ad>{word} at a price that you will like</div>" for word in "abcdef"]
    found = [judged.change.changed for judged in follow([page(above=ad) for ad in adverts])]
    assert found == [True, False, False, False, False]


def test_long_adverts_become_noise_after_two_steps() -> None:
    adverts = [f"<div class=ad>{word} {'very cheap ' * 30}</div>" for word in "abcdef"]
    judged = follow([page(above=ad) for ad in adverts])
    assert [one.change.changed for one in judged] == [True, True, False, False, False]
    assert reasons(judged[-1].change) >= {MaskReason.PATH_NOISE}


def test_noise_hides_nothing_much_bigger_than_itself() -> None:
    adverts = [page(above=f"<p class=ad>{word} {'very cheap ' * 9}</p>") for word in "abcde"]
    grown = page(above=f"<p class=ad>{'A whole report stands here now. ' * 30}</p>")
    assert not last(*adverts).changed and last(*adverts, grown).changed


def test_numbers_in_class_names_do_not_hide_noise() -> None:
    adverts = [f"<div class=ad-{n * 7919}>{n} {'very cheap ' * 30}</div>" for n in range(2, 7)]
    assert not last(*[page(above=advert) for advert in adverts]).changed


def test_counter_is_no_change() -> None:
    pages = [page(above=f"<div class=hits>{n:,} views</div>") for n in range(1200, 1205)]
    assert not any(judged.change.changed for judged in follow(pages))


def test_cookie_wall_is_a_wall_and_the_old_baseline_is_kept() -> None:
    wall = "<main><p>We value your privacy. Accept all cookies?</p></main>"
    verdicts = [judged.change for judged in follow([page(), wall, "", page()])]
    assert [change.kind for change in verdicts] == [
        ChangeKind.WALL,
        ChangeKind.WALL,
        ChangeKind.ATTRIBUTES,
    ]
    assert not any(change.changed for change in verdicts)
    after = follow([page(), wall, page([*STORY, "Something new has happened."])])[-1].change
    assert after.kind is ChangeKind.NEW_TEXT


def test_a_wall_that_stays_is_the_page_in_the_end() -> None:
    wall = "<main><p>This service has ended.</p></main>"
    verdicts = [judged.change.kind for judged in follow([page(), *[wall] * 10])]
    assert verdicts == [ChangeKind.WALL] * 8 + [ChangeKind.EDIT, ChangeKind.ATTRIBUTES]


def test_moved_paragraphs_and_other_elements_are_structure() -> None:
    moved = last(page(), page([*STORY[3:], *STORY[:3]]))
    assert moved == Change(False, ChangeKind.STRUCTURE)
    assert last(page(), page(tag="blockquote")) == Change(False, ChangeKind.STRUCTURE)


def test_links_and_attributes_alone_are_no_change() -> None:
    pages = [page(above=f"<p>See <a href=/{n} data-x={n}>our terms</a></p>") for n in (1, 2)]
    assert last(*pages) == Change(False, ChangeKind.ATTRIBUTES)


def test_page_that_alternates_is_noise_after_its_first_change() -> None:
    a = page()
    b = page([text.upper() + " Other words" for text in STORY])
    verdicts = [judged.change.changed for judged in follow([a, b, a, b, b, a, b])]
    assert verdicts == [True, False, False, False, False, False]
    assert all(judged.change.changed for judged in follow([a, b, a], ChangeRules(captures=1)))


def test_paragraphs_that_stay_are_never_noise_though_some_come_each_time() -> None:
    pages = [page([*STORY, *[f"News number {n} is here" for n in range(m)]]) for m in range(12)]
    assert all(judged.change.kind is ChangeKind.NEW_TEXT for judged in follow(pages))


def test_case_white_space_and_invisible_characters_do_not_count() -> None:
    assert last(page(), page([f" {t.upper()} \u200b\n\u200d" for t in STORY])).changed is False
    assert last(page(["Straße ÄÖ"]), page(["STRASSE äö"])).changed is False


@pytest.mark.parametrize(
    "text",
    ["هذه فقرة جديدة تماما في الصفحة", "這是一個完全嶄新的段落而且很長", "a\0b\0c new words here"],
)
def test_text_of_any_script_counts(text: str) -> None:
    change = last(page(), page([*STORY, text]))
    assert change.changed and change.new_letters >= 10


def test_empty_pages() -> None:
    assert not last("", "<html></html>").changed
    assert last("", page()).kind is ChangeKind.NEW_TEXT
    assert last(page(), "").kind is ChangeKind.WALL


def test_least_letters_are_a_number_or_a_share() -> None:
    pages = (page(), page([*STORY, "nine chars"]))
    assert not last(*pages).changed
    assert last(*pages, rules=ChangeRules(min_letters=9)).changed
    assert last(*pages, rules=ChangeRules(min_letters=0.01)).changed
    assert not last(*pages, rules=ChangeRules(min_letters=0.05)).changed


def test_digits_are_not_masked() -> None:
    before, after = ([*STORY, f"The rule is valid from May {day} on"] for day in (4, 5))
    assert last(page(before), page(after)).changed


def big_page(count: int, noise: int = 0, more: Sequence[str] = ()) -> list[Block]:
    blocks = [Block(f"Row {n} of the table", f"table/tr.c{n % 9}/td", True) for n in range(count)]
    blocks[7] = Block(f"Counted {noise} times until now", "div.counter", True)
    return [*blocks[:100], *[Block(text, "main/p", True) for text in more], *blocks[100:]]


@pytest.mark.parametrize("count", [400, 30_000])
def test_big_pages_are_judged_as_small_ones(count: int) -> None:
    state = None
    for noise in range(4):
        state = judge_change(big_page(count, noise), state, URL).state
    assert len(state or b"") <= MAX_STATE
    quiet = judge_change(big_page(count, 5), state, URL)
    assert not quiet.change.changed and reasons(quiet.change) == {
        MaskReason.PATH_NOISE,
        MaskReason.COUNT_RANGE,
    }
    text = "One more paragraph stands here"
    new = judge_change(big_page(count, 6, [text]), quiet.state, URL)
    assert new.change.kind is ChangeKind.NEW_TEXT and new.change.new_letters == 26
    gone = judge_change(big_page(count, 7), new.state, URL)
    assert not gone.change.changed  # it came and went
    assert judge_change(big_page(count - 3, 8), gone.state, URL).change.kind is ChangeKind.DELETION
    assert judge_change(big_page(count // 9, 8), gone.state, URL).change.kind is ChangeKind.WALL
    other = [Block(f"Else {n} entirely", "p", True) for n in range(count)]
    assert judge_change(other, gone.state, URL).change.kind is ChangeKind.EDIT


def test_a_million_tiny_blocks_take_linear_time() -> None:
    def cost_s(count: int) -> float:
        blocks = [Block(str(n), "ul/li", True) for n in range(1_000)] * (count // 1_000)
        start = time.process_time()
        assert len(judge_change(blocks, None, URL).state) <= MAX_STATE
        return time.process_time() - start

    assert cost_s(1_000_000) < 60 * cost_s(50_000)


# --- properties ------------------------------------------------------------------------------

BLOCKS = st.lists(
    st.builds(
        Block,
        st.text(max_size=40),
        st.sampled_from(["div", "main/p", "nav/ul/li", "div.a/footer.b", "div.ad/p", "p.@search"]),
        st.booleans(),
        st.floats(0, 1),
    ),
    max_size=30,
)


@given(BLOCKS, st.lists(BLOCKS, max_size=5))
def test_same_page_is_never_changed(blocks: list[Block], history: list[list[Block]]) -> None:
    state = None
    for before in [*history, blocks]:
        state = judge_change(before, state, URL).state
    judged = judge_change(blocks, state, URL)
    # The last capture may have been a wall, and the page before be compared.
    assert not judged.change.changed or judged.change.kind is ChangeKind.EDIT
    known = judge_change(blocks, None, URL).state
    assert judge_change(blocks, known, URL).change == Change(False, ChangeKind.ATTRIBUTES)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["", *STORY])), min_size=1, max_size=9),
    st.text(st.characters(categories=["Lu", "Ll", "Lo"]), min_size=12, max_size=40),
    st.sampled_from([1, 3, 5]),
)
def test_text_added_to_stable_content_is_always_a_change(
    history: list[tuple[int, str]], text: str, captures: int
) -> None:
    """Whatever changed elsewhere on the page before."""
    stable = [Block(line, "main/div.text/p", True) for line in STORY]
    state = None
    for number, advert in history:
        noise = [Block(f"{number} {advert}", "main/div.ad", True)]
        judged = judge_change([*stable, *noise], state, URL, rules=ChangeRules(captures=captures))
        state = judged.state
    # 39 stands before all texts, so that it was never seen.
    added = Block(f"39 {text}", "main/div.text/p", True)
    judged = judge_change([*stable, added], state, URL, rules=ChangeRules(captures=captures))
    assert judged.change.changed and judged.change.new_letters >= 10


@given(BLOCKS)
def test_keys_do_not_depend_on_order(blocks: list[Block]) -> None:
    found = find_blocks(blocks)
    turned = find_blocks(blocks[::-1])
    assert found.digest == turned.digest and sorted(found.keys) == sorted(turned.keys)
    assert len(found.keys) == len(found.letters) == len(found.texts) == len(found.places)


# --- noise of a host -------------------------------------------------------------------------


def rotating(url: str, noise: HostNoise, count: int = 4) -> HostNoise:
    state = None
    for number in range(count):
        advert = f"<div class=promo>{url} {number} {'cheap offers ' * 9}</div>"
        blocks = parse_page(page(above=advert).encode(), url).blocks
        judged = judge_change(blocks, state, url, noise)
        state = judged.state
        noise = noise.merge(judged.noise)
    return noise


def test_noise_of_a_host_is_known_on_its_next_page_at_once() -> None:
    noise = NO_NOISE
    for number in range(3):
        noise = rotating(f"http://a.test/{number}", noise)
    noise = unpack_noise(noise.pack())
    pages = [page(above=f"<div class=promo>{'best offer ' * n}</div>") for n in (20, 30)]
    assert last(*pages).changed
    change = follow(pages, host=noise)[-1].change
    assert not change.changed and reasons(change) == {MaskReason.HOST_NOISE}
    assert follow([page(), page([*STORY, "Quite new words"])], host=noise)[-1].change.changed


def test_paths_that_are_quiet_elsewhere_are_no_noise_of_the_host() -> None:
    noise = rotating("http://a.test/1", NO_NOISE, count=9)
    (path,) = [path for path in noise.paths if noise.is_noisy(path)]
    for _ in range(4):
        noise = noise.merge(learn_noise("http://a.test/2", (), (), [path]))
    assert not noise.is_noisy(path)


NOISES = st.builds(
    learn_noise,
    st.text(max_size=3),
    st.lists(st.integers(0, 0xFFFF), max_size=20),
    st.lists(st.integers(0, 0xFFFF), max_size=20),
    st.lists(st.integers(0, 0xFFFF), max_size=20),
)


@given(st.lists(NOISES, max_size=5))
def test_noise_is_merged_in_any_order_and_packed(parts: list[HostNoise]) -> None:
    forth = back = NO_NOISE
    for part in parts:
        forth = forth.merge(part)
    for part in parts[::-1]:
        back = part.merge(back)
    assert dict(forth.paths) == dict(back.paths)
    assert unpack_noise(forth.pack()).paths == forth.paths


def test_noise_of_a_huge_host_stays_small() -> None:
    noise = learn_noise("a", range(60_000), (), ()).merge(learn_noise("b", [7], [7], ()))
    packed = noise.pack()
    assert len(packed) <= MAX_NOISE and unpack_noise(packed).paths[7].changed == 2


@given(st.binary(max_size=60), st.integers(0, 100))
def test_damaged_noise_is_no_noise(garbage: bytes, at: int) -> None:
    assert unpack_noise(garbage) == NO_NOISE
    packed = bytearray(learn_noise("a", range(9), (), ()).pack())
    packed[at % len(packed)] ^= 1
    assert unpack_noise(bytes(packed)) == NO_NOISE


def test_visits_that_found_the_same_bytes_count_though_nobody_judged_them() -> None:
    """A place that is edited now and then is no noise only because nothing else was judged; and a
    text that returns after a while is a change.
    """

    def capture(edit: int) -> Sequence[Block]:
        story = [*STORY, f"What is new in edition {'abcdefghij'[edit] * 12} of this page."]
        return parse_page(page(story).encode(), URL).blocks

    editions = [0, 0, 0, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3, 4, 4, 4, 4, 1, 1, 1, 1, 0]
    state = None
    told = None
    last = -1
    noise = NO_NOISE
    told_noise = NO_NOISE
    for visit, edition in enumerate(editions):
        judged = judge_change(capture(edition), state, URL, noise, visit=visit)
        state = judged.state
        noise = noise.merge(judged.noise)
        if edition == last:
            assert not judged.change.changed
            continue
        skipped = judge_change(capture(edition), told, URL, told_noise, visit=visit)
        assert skipped.change.changed == judged.change.changed == (visit > 0), visit
        told = skipped.state
        told_noise = told_noise.merge(skipped.noise)
        before = unpack_state(judged.state)
        after = unpack_state(skipped.state)
        assert before is not None and after is not None
        assert before.digests == after.digests and before.varying == after.varying
        assert before.steps == pytest.approx(after.steps, abs=0.2)
        last = edition
    assert not any(path.is_noisy for path in told_noise.paths.values())
