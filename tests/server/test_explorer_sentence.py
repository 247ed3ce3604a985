"""The explorer's first view in a real browser: words of a text, their nearest usages, the mix of layers."""

from __future__ import annotations

import contextlib
import io
from urllib.parse import quote

import numpy as np
import pytest

from browsing import CHROMIUM, SENTENCE, VIEWS, WORD, Visit, nearest, tokenize

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def server(explored):
    return explored


@pytest.mark.parametrize("by", ["pointer", "keyboard"])
def test_a_word_is_chosen(visit: Visit, by: str):
    visit.go(f"#/sentence?text={quote(SENTENCE)}")
    words = visit.page.locator(".token")
    if by == "pointer":
        words.nth(1).click()
    else:
        words.first.focus()
        for key in ("End", "Home", "ArrowRight", "Enter"):
            visit.page.keyboard.press(key)
    visit.until("token=1")
    playwright.expect(words.nth(1)).to_have_attribute("aria-pressed", "true")
    visit.see(".usages mark", WORD)
    for part in (".rankings", ".types"):
        visit.see(part)


def test_the_layer_of_the_index_alone_gives_the_cosines_of_the_index(server):
    found = nearest(server.address, k=30, layers=True)
    top = [[np.array(one[name])[-1, -1] for name in ("own", "cross")] for one in found["usages"]]
    length = found["query"]["own"][-1][-1]
    cosines = [cross / np.sqrt(own * length) for own, cross in top]
    np.testing.assert_allclose(cosines, [usage["cosine"] for usage in found["usages"]], atol=1e-3)


def test_an_untouched_mix_is_the_servers_answer_and_a_moved_one_asks_for_nothing(visit: Visit, server):
    visit.go("sentence")
    answer = nearest(server.address, k=50)["usages"][:10]
    assert visit.cosines() == [f"{usage['cosine']:.3f}" for usage in answer]
    quotes = visit.page.locator(".usages .quote")
    playwright.expect(quotes).to_have_text([usage["sentence"] for usage in answer])
    playwright.expect(visit.page.locator(".moved")).to_have_count(0)
    visit.see(".mixer", "one-index holds the top layer, 2")
    before, asked = visit.cosines(), []
    visit.page.on("request", lambda request: asked.append(request.url) if request.method == "POST" else None)
    slider = visit.page.locator("input[type=range]").first
    slider.focus()
    slider.press("End")
    playwright.expect(slider).to_be_focused()
    visit.until("mix=1,0,1")
    assert asked == []
    moved = visit.cosines()
    assert moved != before
    visit.reload()
    assert visit.cosines() == moved
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(visit.line("Python"), {})
    assert [line.split()[0] for line in said.getvalue().splitlines()] == moved
    assert "command line ranks by the layer" in visit.page.locator("details.code").first.inner_text()
    visit.page.get_by_role("button", name="As the index").click()
    visit.settle()
    assert visit.cosines() == before
    visit.go(f"{VIEWS['sentence']}&mix=0,0,0")
    assert visit.cosines() == before
    visit.see(".mixer", "The list is its answer.")


def test_layer_0_alone_finds_all_usages_of_the_word_itself(visit: Visit, server):
    visit.go(f"{VIEWS['sentence']}&mix=1,0,0")
    found = nearest(server.address, k=50, layers=True)
    many = len(found["usages"]) + len(found["others"])
    assert visit.cosines() == ["1.000"] * 10  # the word has more usages than are shown
    playwright.expect(visit.page.locator(".usages mark")).to_have_text([WORD] * 10)
    visit.see("#mix-0-alone", "Alone: 10 of its best 10 are the same word, mean cosine 1.00")
    visit.see("#mix-1-alone", f"Alone, among the {many} candidates: ")
    visit.see("#mix-2-alone", "Alone: ")
    visit.see(".mixer", f"{len(found['usages'])} usages nearest in the layer of the index")
    visit.see("section[aria-labelledby=types-title] .hint", "the sliders do not change this list")


def test_a_paragraph_is_read_sentence_by_sentence(visit: Visit, server):
    text = f"曹操大怒，欲斩此将。{SENTENCE}\n孙权大喜，重赏诸将。"
    visit.go(f"#/sentence?text={quote(text)}&token=9")
    visit.see(".tokens .token[aria-pressed=true]", WORD)
    assert "".join(visit.page.locator(".token.own").all_inner_texts()) == SENTENCE
    assert visit.page.locator(".token").count() > 15
    assert visit.cosines()[0] == "1.000"
    assert visit.cosines() == [f"{one['cosine']:.3f}" for one in nearest(server.address, k=50)["usages"][:10]]
    playwright.expect(visit.page.locator(".usages .quote").first).to_have_text(SENTENCE)
    assert SENTENCE in visit.line("Python")
    assert "大怒" not in visit.line("Python")
    assert "天色[将]晚" in visit.page.locator("pre[aria-label=Python]").nth(1).inner_text()


def test_a_long_text_is_shown_in_parts_and_one_too_long_is_told(visit: Visit):
    visit.go(f"#/sentence?text={quote('曹操大怒。' * 700)}&token=1")
    visit.see("section", "700 sentences")
    playwright.expect(visit.page.locator(".token")).to_have_count(1500)
    visit.see(".usages mark", "大怒")
    visit.page.get_by_role("button", name="Show more (600 words left)").click()
    playwright.expect(visit.page.locator(".token")).to_have_count(2100)
    visit.refused = True
    visit.go(f"#/sentence?text={quote('字 ' * 2001)}", "zh")
    visit.see("[role=alert]", "其中一句有 2,001 个词，最多 2,000 个。")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_examples_are_of_the_language_of_the_corpus(visit: Visit, language: str):
    for view in ("sentence", "senses"):
        visit.go(f"#/{view}", language)
        visit.see(".empty a", WORD)


def test_the_first_examples_are_cut_well(visit: Visit, server):
    visit.go("#/sentence")
    texts = visit.page.locator(".empty li").all_inner_texts()
    assert [" ".join(words) for words in tokenize(server.address, texts)] == [
        "曹操 大怒 ， 欲 斩 此 将 。",
        "天色 将 晚 ， 人马 困乏 。",
        "宝玉 听 了 ， 心中 十分 欢喜 。",
    ]
