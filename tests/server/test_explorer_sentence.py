"""The sentence view of the explorer in a real browser: tokens, nearest usages, the layer sliders."""

from __future__ import annotations

import contextlib
import io
from urllib.parse import quote

import httpx
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
    visit.wait_for_address("token=1")
    playwright.expect(words.nth(1)).to_have_attribute("aria-pressed", "true")
    visit.expect_visible(".usages mark", WORD)
    for part in (".rankings", ".word-list"):
        visit.expect_visible(part)


def test_the_gram_matrices_of_the_top_layer_give_the_cosines_of_the_index(server):
    response = nearest(server.address, k=30, layers=True)
    top = [[np.array(usage[name])[-1, -1] for name in ("own", "cross")] for usage in response["usages"]]
    length = response["query"]["own"][-1][-1]
    cosines = [cross / np.sqrt(own * length) for own, cross in top]
    np.testing.assert_allclose(cosines, [usage["cosine"] for usage in response["usages"]], atol=1e-3)


def test_sliders_at_rest_show_the_list_of_the_server_and_moving_one_sends_no_request(visit: Visit, server):
    visit.go("sentence")
    expected = nearest(server.address, k=50)["usages"][:10]
    assert visit.cosines() == [f"{usage['cosine']:.3f}" for usage in expected]
    quotes = visit.page.locator(".usages .quote")
    playwright.expect(quotes).to_have_text([usage["sentence"] for usage in expected])
    playwright.expect(visit.page.locator(".moved")).to_have_count(0)
    playwright.expect(visit.page.locator(".mixer")).to_be_hidden()  # the usages come first
    visit.page.get_by_text("Layer mix: top").click()
    visit.expect_visible(".mixer", "one-index uses the top layer (2)")
    before = visit.cosines()
    requests: list[str] = []
    visit.page.on(
        "request", lambda request: requests.append(request.url) if request.method == "POST" else None
    )
    slider = visit.page.locator("input[type=range]").first
    slider.focus()
    slider.press("End")
    playwright.expect(slider).to_be_focused()
    visit.wait_for_address("mix=1,0,1")
    assert requests == []
    moved = visit.cosines()
    assert moved != before
    visit.reload()
    assert visit.cosines() == moved
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(visit.code("Python"), {})
    assert [line.split()[0] for line in output.getvalue().splitlines()] == moved
    assert "command line ranks by the layer" in visit.page.locator("details.code").first.inner_text()
    visit.page.get_by_role("button", name="Reset").click()
    visit.settle()
    assert visit.cosines() == before
    visit.go(f"{VIEWS['sentence']}&mix=0,0,0")
    assert visit.cosines() == before
    visit.expect_visible(".mixer", "The list shows its results.")


def test_layer_0_alone_finds_usages_of_the_same_word(visit: Visit, server):
    visit.go(f"{VIEWS['sentence']}&mix=1,0,0")
    response = nearest(server.address, k=50, layers=True)
    count = len(response["usages"]) + len(response["others"])
    assert visit.cosines() == ["1.000"] * 10  # the word has more than ten usages
    playwright.expect(visit.page.locator(".usages mark")).to_have_text([WORD] * 10)
    visit.expect_visible(
        "#mix-0-alone", "With this layer alone, 10 of the top 10 are the same word, mean cosine 1.00"
    )
    visit.expect_visible("#mix-1-alone", f"With this layer alone, among the {count} candidates, ")
    visit.expect_visible("#mix-2-alone", "With this layer alone, ")
    visit.expect_visible(".mixer", f"the {len(response['usages'])} nearest usages in the layer of the index")
    visit.expect_visible("section[aria-labelledby=words-title] .hint", "not only in this sentence")


def test_a_paragraph_is_read_sentence_by_sentence(visit: Visit, server):
    text = f"曹操大怒，欲斩此将。{SENTENCE}\n孙权大喜，重赏诸将。"
    visit.go(f"#/sentence?text={quote(text)}&token=9")
    visit.expect_visible(".tokens .token[aria-pressed=true]", WORD)
    assert "".join(visit.page.locator(".token.in-sentence").all_inner_texts()) == SENTENCE
    assert visit.page.locator(".token").count() > 15
    assert visit.cosines()[0] == "1.000"
    assert visit.cosines() == [
        f"{usage['cosine']:.3f}" for usage in nearest(server.address, k=50)["usages"][:10]
    ]
    playwright.expect(visit.page.locator(".usages .quote").first).to_have_text(SENTENCE)
    assert SENTENCE in visit.code("Python")
    assert "大怒" not in visit.code("Python")
    assert "天色[将]晚" in visit.page.locator("pre[aria-label=Python]").nth(1).inner_text()


def test_a_long_text_is_shown_in_pages_and_a_too_long_sentence_is_an_error(visit: Visit):
    visit.go(f"#/sentence?text={quote('曹操大怒。' * 700)}&token=1")
    visit.expect_visible("section", "700 sentences")
    playwright.expect(visit.page.locator(".token")).to_have_count(1500)
    visit.expect_visible(".usages mark", "大怒")
    visit.page.get_by_role("button", name="Show more (600 tokens left)").click()
    playwright.expect(visit.page.locator(".token")).to_have_count(2100)
    visit.expects_failures = True
    visit.go(f"#/sentence?text={quote('字 ' * 2001)}", "zh")
    visit.expect_visible("[role=alert]", "其中一句有 2,001 个词，上限为 2,000 个。")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_examples_come_from_the_corpus(visit: Visit, server, language: str):
    for view in ("sentence", "concordance", "senses"):
        visit.go(f"#/{view}", language)
        visit.expect_visible(".empty a", WORD)
    visit.go("#/sentence", language)
    corpus = httpx.get(f"{server.address}/info").json()["indexes"][0]["examples"]
    playwright.expect(visit.page.locator(".empty li")).to_have_text(corpus["texts"])
    visit.page.locator(".empty a").first.click()
    visit.expect_visible(".token[aria-pressed=true]", corpus["words"][0])  # an example chooses its word
    visit.expect_visible(".usages mark")


def test_without_an_index_examples_are_in_the_language_of_the_model(visit: Visit, server):
    visit.alter_response("/info", lambda info: info.update(indexes=[]))
    visit.go("#/sentence")
    texts = visit.page.locator(".empty li").all_inner_texts()
    assert [" ".join(words) for words in tokenize(server.address, texts)] == [
        "天色 将 晚 ， 人马 困乏 。",
        "他 在 河边 坐下 ， 看着 流水 。",
    ]
    assert "corpus" not in visit.page.locator("main").inner_text()
    visit.page.locator(".empty a").first.click()
    visit.expect_visible(".token[aria-pressed=true]", "将")
    visit.expect_visible(".rankings")
    assert "in the corpus" not in visit.page.locator("main").inner_text()
