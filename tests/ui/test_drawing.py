"""The pieces that panes are drawn with, as text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ground, Ink, Line, Span, clip, join_that_fit, spread
from atropos_tui.ui.phrases import item_preview
from atropos_tui.ui.widgets.bars import bar, columns, gauge, split_bar
from atropos_tui.ui.widgets.canvas import _changed_regions
from atropos_tui.ui.widgets.frame import framed
from atropos_tui.ui.widgets.histogram import histogram
from atropos_tui.ui.widgets.table import Column, Table
from atropos_tui.ui.widgets.trend import Sample, trend

words = st.text(st.sampled_from("ab 漢é"), max_size=12)
lines = st.lists(words).map(lambda texts: Line(*texts))


def plain(rows: list[Line]) -> list[str]:
    return [row.plain.rstrip() for row in rows]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (formatting.count(1432), "1,432"),
        (formatting.short_count(999), "999"),
        (formatting.short_count(9_120), "9.1k"),
        (formatting.short_count(999_960), "1.0M"),
        (formatting.size(812), "812 B"),
        (formatting.size(43_400_000), "43 MB"),
        (formatting.rate(0), "0/s"),
        (formatting.rate(0.05), "3/min"),
        (formatting.rate(4.13), "4.1/s"),
        (formatting.duration(0.041), "41ms"),
        (formatting.duration(0.0996), "0.1s"),
        (formatting.duration(9.97), "9s"),
        (formatting.age(-3), "0s"),
        (formatting.age(99.9), "99s"),
        (formatting.age(119.9), "119s"),
        (formatting.age(120), "2m"),
        (formatting.age(11_160), "3.1h"),
        (formatting.age(207_360), "2.4d"),
        (formatting.score(0.7444), "0.74"),
        (formatting.score(-0.001), "0.00"),
        (formatting.score(12.34), "12.3"),
        (formatting.score(float("nan")), "nan"),
        (formatting.score(-1234.0), "-1.2k"),
        (formatting.exact(1.0), "1"),
        (formatting.percent(0.004), "<1%"),
        (formatting.percent(0.18), "18%"),
        (formatting.plural(1, "group"), "1 group"),
        (formatting.plural(2_000, "group"), "2,000 groups"),
    ],
)
def test_numbers_are_written_for_reading(written: str, expected: str) -> None:
    assert written == expected


class TestLine:
    @given(lines, st.integers(0, 30))
    def test_fitting_gives_exactly_the_width(self, line: Line, width: int) -> None:
        assert line.fit(width).width == width
        assert line.fit_right(width).width == width

    @given(lines, lines, st.integers(0, 40))
    def test_spreading_gives_exactly_the_width(self, left: Line, right: Line, width: int) -> None:
        assert spread(left, right, width).width == width

    @given(words, st.integers(1, 10))
    def test_clipping_never_exceeds_the_width(self, text: str, width: int) -> None:
        assert Line(clip(text, width)).width <= width

    def test_what_is_cut_ends_in_an_ellipsis(self) -> None:
        assert Line("rollout ", Span("queue", Ink.DIM)).fit(10).plain == "rollout q…"

    def test_parts_without_room_are_left_out(self) -> None:
        parts = [Line("first"), Line("a long second one"), Line("3rd")]
        assert join_that_fit(parts, 12, " · ").plain == "first · 3rd"

    def test_a_ground_spares_spans_that_have_their_own(self) -> None:
        line = Line("a", Span("b", ground=Ground.CURSOR)).on(Ground.SELECTED)
        assert [span.ground for span in line.spans] == [Ground.SELECTED, Ground.CURSOR]


class TestRepainting:
    def test_only_the_cells_that_changed_are_repainted(self) -> None:
        old, new = Line("group 12   3s").fit(40), Line("group 12   4s").fit(40)
        (region,) = _changed_regions(5, old, new, 40)
        assert (region.x, region.y, region.width, region.height) == (11, 5, 1, 1)

    def test_changes_far_apart_are_repainted_apart(self) -> None:
        old, new = Line("a" + " " * 38 + "b"), Line("c" + " " * 38 + "d")
        assert [(region.x, region.width) for region in _changed_regions(0, old, new, 40)] == [(0, 1), (39, 1)]

    def test_a_change_of_style_alone_counts(self) -> None:
        assert _changed_regions(0, Line("a"), Line(Span("a", Ink.BAD)), 1)

    def test_a_wide_character_is_repainted_whole(self) -> None:
        (region,) = _changed_regions(0, Line("ab漢"), Line("a漢b"), 4)
        assert (region.x, region.width) == (1, 3)

    @given(st.tuples(words, words))
    def test_repainting_the_regions_gives_the_new_line(self, texts: tuple[str, str]) -> None:
        old, new = (Line(text).fit(26) for text in texts)
        if old == new:
            return
        cells = list(_by_cell(old))
        for region in _changed_regions(0, old, new, 26):
            cells[region.x : region.right] = _by_cell(new)[region.x : region.right]
        assert cells == _by_cell(new)


def _by_cell(line: Line) -> list[str]:
    return [
        cell for character in line.plain for cell in ([character, ""] if Line(character).width == 2 else [character])
    ]


class TestItems:
    def test_where_there_is_room_an_item_is_whole(self) -> None:
        assert item_preview("{'text': 'abc', 'level': 5}", 30) == "{'text': 'abc', 'level': 5}"

    def test_else_dicts_that_begin_alike_are_told_by_their_first_value(self) -> None:
        assert item_preview("{'text': 'abc', 'level': 5}", 12) == "abc"
        assert item_preview("a plain text", 5) == "a plain text"


class TestTable:
    columns = (Column("id", 4, right=True), Column("what", 6, grows=True), Column("age", 4, right=True, rank=1))

    def table(self, count: int, cursor: int = -1) -> Table:
        return Table(self.columns, count, lambda index: (Line(str(index)), Line(f"item {index}"), Line("3s")), cursor)

    def test_columns_align_and_one_takes_the_rest(self) -> None:
        assert plain(self.table(2).lines(24, 3)) == [
            "  id  what           age",
            "   0  item 0          3s",
            "   1  item 1          3s",
        ]

    def test_columns_of_the_highest_rank_give_way(self) -> None:
        assert plain(self.table(1).lines(14, 2)) == ["  id  what", "   0  item 0"]

    def test_what_does_not_fit_is_counted(self) -> None:
        assert self.table(10).lines(24, 5)[-1].plain == "  … 7 more"

    def test_rows_that_cannot_be_asked_for_yet_are_counted_too(self) -> None:
        assert replace(self.table(10), beyond=2_000).lines(24, 5)[-1].plain == "  … 2,007 more"

    @pytest.mark.parametrize("cursor", range(10))
    def test_the_row_of_the_cursor_is_always_shown(self, cursor: int) -> None:
        shown = self.table(10, cursor).lines(24, 5)
        assert next(line for line in shown if line.spans[0].ground is Ground.SELECTED).plain.split()[0] == str(cursor)

    def test_rows_that_are_not_shown_are_not_asked_for(self) -> None:
        asked: list[int] = []

        def row(index: int) -> tuple[Line, ...]:
            asked.append(index)
            return (Line(str(index)),)

        Table((Column("id", 7),), 1_000_000, row, cursor=500_000).lines(24, 5)
        assert asked == [499_998, 499_999, 500_000, 500_001]

    def test_a_cell_may_draw_itself_to_the_width_of_its_column(self) -> None:
        table = Table((Column("", 10),), 1, lambda _: [bar(0.5)], with_head=False)
        assert plain(table.lines(10, 1)) == ["━━━━━"]


class TestBars:
    def test_anything_above_nothing_shows(self) -> None:
        assert bar(0.0001)(20).plain == "╸"
        assert bar(0.0)(20).plain == ""
        assert gauge(1, 1_000, 10).plain == "━─────────"

    def test_a_full_gauge_is_full_and_never_longer(self) -> None:
        assert gauge(9, 8, 4).plain == "━━━━"

    def test_shares_fill_the_whole_and_small_ones_keep_a_cell(self) -> None:
        line = split_bar([(1_000, Ink.GOOD), (1, Ink.BAD)], 10)
        assert [(len(span.text), span.ink) for span in line.spans] == [(9, Ink.GOOD), (1, Ink.BAD)]

    def test_columns_scale_to_the_highest(self) -> None:
        assert plain(columns([0, 1, 2, 4], 4, 2)) == ["   █", " ▄██"]


class TestHistogram:
    edges = tuple(index / 4 for index in range(5))

    def test_bars_stand_over_their_bins_on_one_scale(self) -> None:
        rows = plain(histogram(self.edges, (0, 1, 2, 4), (), 13, 4))
        assert rows[0] == "   4       ██"
        assert rows[1] == "       ▄▄████"

    def test_a_spike_stands_at_its_value_in_its_own_ink(self) -> None:
        top, *_ = histogram(self.edges, (0, 0, 0, 0), ((1.0, 9),), 13, 4)
        assert [(span.text, span.ink) for span in top.spans if span.ink is Ink.SPIKE] == [("▲", Ink.SPIKE)]

    def test_a_spike_is_cut_so_that_the_bins_beside_it_stay_visible(self) -> None:
        rows = histogram(self.edges, (0, 10, 0, 0), ((1.0, 1_000),), 25, 8)
        assert "▲" in rows[0].plain
        assert "▁" in rows[5].plain

    def test_a_single_rollout_shows_beside_thousands(self) -> None:
        assert "▁▁" in histogram(self.edges, (1, 0, 0, 9_000), (), 13, 4)[1].plain

    def test_large_values_on_the_axis_are_written_in_short(self) -> None:
        axis = histogram((0.0, 5e6, 1e7), (1, 2), (), 60, 6)[-1].plain
        assert axis.split() == ["0", "2.5M", "5.0M", "7.5M", "10M"]

    def test_without_room_nothing_is_drawn(self) -> None:
        assert histogram(self.edges, (1, 2, 3, 4), (), 6, 4) == []
        assert histogram((), (), (), 40, 10) == []


class TestTrend:
    def test_a_rising_line_goes_from_the_lower_left_to_the_upper_right(self) -> None:
        samples = [Sample(value, value / 10, value / 10, value / 10) for value in range(11)]
        rows = plain(trend(samples, 15, 3, start=0, end=10, bottom=0.0, top=1.0))
        assert rows[0].startswith("1.00")
        assert rows[0][-1] not in " \u2800"
        assert rows[2].startswith("0.00 ")
        assert rows[2][5] not in " \u2800"

    def test_the_band_lies_behind_the_line(self) -> None:
        samples = [Sample(at, 0.5, 0.0, 1.0) for at in range(10)]
        spans = [span for row in trend(samples, 15, 4, start=0, end=9, bottom=0.0, top=1.0) for span in row.spans]
        assert {span.ground for span in spans if span.ink is Ink.ACCENT} == {Ground.BAND}

    def test_more_samples_than_dots_keep_their_extremes(self) -> None:
        samples = [Sample(index, 0.5, 0.5, 1.0 if index == 500 else 0.5) for index in range(1_000)]
        top = trend(samples, 25, 4, start=0, end=999, bottom=0.0, top=1.0)[0]
        assert any(span.ground is Ground.BAND or (span.ink is Ink.BAND and span.text.strip()) for span in top.spans)

    def test_one_sample_and_none_draw_without_fuss(self) -> None:
        one = [Sample(7, 1.0, 1.0, 1.0)]
        assert len(trend(one, 20, 3, start=7, end=7, bottom=0.0, top=1.0)) == 3
        assert len(trend(one, 20, 3, start=0, end=9, bottom=1.0, top=1.0)) == 3
        assert len(trend([], 20, 3, start=0, end=9, bottom=0.0, top=1.0)) == 3

    def test_samples_stand_where_they_are_in_time_and_over_a_long_gap_nothing_is_drawn(self) -> None:
        morning, evening = ([Sample(at, 0.5, 0.4, 0.6) for at in range(start, start + 20)] for start in (0, 60))
        row = plain(trend([*morning, *evening], 55, 1, start=0, end=99, bottom=0.0, top=1.0))[0][5:]
        drawn = [cell not in " \u2800" for cell in row]
        assert drawn[:40] == [True] * 10 + [False] * 20 + [True] * 10
        assert not any(drawn[40:])

    @pytest.mark.parametrize(
        ("bottom", "shown"),
        [(-50.0, " -50 "), (-5.0, "-5.0 "), (-1_000.0, "-1e3 "), (-20_000.0, "-20k "), (-1e5, "-1e5 ")],
    )
    def test_the_scale_below_zero_is_not_cut(self, bottom: float, shown: str) -> None:
        rows = plain(trend([Sample(0, bottom, bottom, bottom)], 20, 3, start=0, end=1, bottom=bottom, top=0.0))
        assert rows[-1].startswith(shown)

    def test_few_samples_far_apart_are_connected_all_the_same(self) -> None:
        samples = [Sample(at, 0.5, 0.5, 0.5) for at in (0, 50, 100)]
        row = plain(trend(samples, 55, 1, start=0, end=100, bottom=0.0, top=1.0))[0][5:]
        assert " " not in row.replace("\u2800", " ")


def test_a_frame_is_as_large_as_asked_and_drops_numbers_without_room() -> None:
    wide = framed([Line("body")], 30, 4, title=Line("Scores"), numbers=Line("mean 0.7"), focused=False)
    assert plain(wide) == [
        "╭─ Scores ──────── mean 0.7 ─╮",
        "│ body                       │",
        "│                            │",
        "╰────────────────────────────╯",
    ]
    narrow = framed([], 14, 3, title=Line("Scores"), numbers=Line("mean 0.7"), focused=False)
    assert narrow[0].plain == "╭─ Scores ───╮"
