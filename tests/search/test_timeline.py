"""Words over documents and years: frequencies, senses, intervals, and the selections that periods give."""

from __future__ import annotations

import numpy as np
import pytest

from builders import random_model, small_config
from polyseme import api
from polyseme.elmo import Elmo
from polyseme.errors import UnknownWordError, UsageError
from polyseme.search.index import Index
from polyseme.search.selection import group_documents, select_documents
from polyseme.search.timeline import choose_grouping, estimate_share, list_groupings
from polyseme.text.corpus.documents import Document


def make_documents(*names: str) -> list[Document]:
    return [Document(name, number, "", {}) for number, name in enumerate(names, start=1)]


@pytest.fixture(scope="module")
def speeches(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Speeches without metadata, with the year in the name of the file; *war* is said once more each time."""
    folder = tmp_path_factory.mktemp("speeches")
    for number, year in enumerate(range(1790, 1800, 2), start=1):
        text = "the war is here\n" * number + "the bank of the river\nthe bank failed\n" * 3
        (folder / f"{year}_speech.txt").write_text(text)
    files = sorted(folder.glob("*.txt"))
    return api.index(Elmo(random_model(small_config())), files, folder / "index", progress=False)


def test_the_frequency_of_each_year_is_that_of_its_usages(speeches: Index):
    timeline = api.timeline(speeches, "war", progress=False)
    assert timeline.by == "year"
    assert [period.name for period in timeline.periods] == ["1790", "1792", "1794", "1796", "1798"]
    assert [period.count for period in timeline.periods] == [1, 2, 3, 4, 5]
    for number, period in enumerate(timeline.periods, start=1):
        assert period.total == 4 * number + 24
        assert period.frequency == pytest.approx(1e6 * number / period.total)
        assert period.interval[0] < period.frequency < period.interval[1]


def test_a_word_with_few_usages_has_a_frequency_but_no_senses(speeches: Index):
    timeline = api.timeline(speeches, "failed", by="year/10", documents="1-2", progress=False)
    (decade,) = timeline.periods
    assert (decade.name, decade.count) == ("1790-1799", 6)
    assert timeline.senses is None
    assert decade.shares == ()
    assert timeline.as_dict()["kind"] is None


def test_the_shares_of_all_periods_add_up_to_those_of_the_senses(speeches: Index):
    timeline = api.timeline(speeches, "the", groups=True, progress=False)
    assert timeline.senses is not None
    counts = np.array([period.count for period in timeline.periods])
    shares = np.array([period.shares for period in timeline.periods])
    expected = [sense.share for sense in timeline.senses.senses]
    np.testing.assert_allclose(counts @ shares / counts.sum(), expected)
    for period in timeline.periods:
        for share, (low, high) in zip(period.shares, period.share_intervals, strict=True):
            assert 0 <= low <= share <= high <= 1


def test_a_period_selects_its_documents(speeches: Index):
    timeline = api.timeline(speeches, "war", by="year/5", progress=False)
    assert [period.documents for period in timeline.periods] == ["1-3", "4-5"]
    for period in timeline.periods:
        part = speeches.restrict(period.documents)
        assert part.count("war") == period.count
        assert len(part) == period.total


def test_a_part_of_an_index_has_only_its_documents(speeches: Index):
    timeline = api.timeline(speeches, "war", by="document", documents="year=1792-1794", progress=False)
    assert [period.name for period in timeline.periods] == ["1792_speech.txt", "1794_speech.txt"]


def test_years_come_from_titles_and_file_names_without_metadata():
    listed = make_documents("speeches/1790_Whig.txt", "speeches/1861_Tory.txt")
    assert group_documents(listed, "year/100") == ["1700-1799", "1800-1899"]
    assert select_documents(listed, "year=1800-1900").tolist() == [False, True]
    titled = [Document("1999.txt", 1, "The year 1848", {}), Document("1999.txt", 2, "Peace", {})]
    assert group_documents(titled, "year") == ["1848", "1999"]


def test_metadata_come_before_the_years_in_names():
    listed = [Document("1790.txt", 1, "", {"year": "1800"}), Document("1791.txt", 2, "", {})]
    assert group_documents(listed, "year") == ["1800", None]


def test_numbers_that_are_no_years_are_not_taken_for_years():
    with pytest.raises(UsageError, match="The index has no 'year' of its documents"):
        group_documents(make_documents("page 12345.txt", "a 999.txt", "b 2150.txt"), "year")


def test_documents_are_joined_by_their_numbers():
    listed = make_documents(*(f"{number}.txt" for number in range(1, 13)))
    assert group_documents(listed, "document/5") == ["1-5"] * 5 + ["6-10"] * 5 + ["11-15"] * 2
    assert group_documents([Document("a.txt", 0, "", {})], "document/5") == ["1-5"]


def test_the_grouping_is_the_finest_that_can_be_read():
    years = make_documents(*(f"{year}.txt" for year in range(1800, 1900)))
    assert choose_grouping(years) == "year/5"
    assert choose_grouping(make_documents(*("chapter.txt",) * 120)) == "document/5"
    assert choose_grouping(make_documents("one.txt", "two.txt")) == "document"
    assert {"year", "year/10", "document"} <= set(list_groupings(years))
    parties = [Document("a", n, "", {"party": party}) for n, party in enumerate("xyx", start=1)]
    assert list_groupings(parties) == ["document", "party"]


@pytest.mark.parametrize(("count", "total"), [(0, 10), (3, 10), (10, 10), (1, 1000)])
def test_intervals_are_those_of_wilson(count: int, total: int):
    scipy_stats = pytest.importorskip("scipy.stats")
    expected = scipy_stats.binomtest(count, total).proportion_ci(0.95, "wilson")
    assert estimate_share(count, total) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_nothing_says_nothing():
    assert estimate_share(0, 0) == (0.0, 1.0)


def test_a_word_without_usages_is_refused(speeches: Index):
    with pytest.raises(UnknownWordError):
        api.timeline(speeches, "missing", progress=False)


def test_the_command_prints_a_row_per_period(speeches: Index, capsys: pytest.CaptureFixture[str]):
    from polyseme.cli import meanings

    meanings.timeline(speeches.folder, "war", by="year/5")
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3].split("\t")[:4] == ["year", "usages", "per million", "95% interval"]
    assert [line.split("\t")[:2] for line in lines[-2:]] == [["1790-1794", "6"], ["1795-1799", "9"]]
