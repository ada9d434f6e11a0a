"""Names of others, in a form that is safe to print."""

import os

from dmkc.showing import MOST_CHARACTERS, html_lines, html_pairs, one_line, printable


def test_what_a_terminal_would_act_upon_is_escaped():
    assert printable("plain, Äöü and 漢字") == "plain, Äöü and 漢字"
    assert printable("a\x1b]0;title\x07\r\n\tb") == "a\\x1b]0;title\\x07\\r\\n\\tb"
    assert printable("right\u202eleft\u2028") == "right\\u202eleft\\u2028"
    assert printable(os.fsdecode(b"caf\xe9.csv")) == "caf\\xe9.csv"
    assert printable(os.fsdecode(b"\xff")).isprintable()
    assert printable(3.5) == "3.5"


def test_long_texts_are_cut_in_the_middle():
    text = "a" * 10_000 + "end"
    assert len(one_line(text)) < MOST_CHARACTERS + 10 and one_line(text).endswith("end")


def test_what_is_shown_in_notebooks_is_escaped():
    assert html_lines(["<b>", "a\x1b"]) == "<div><b>&lt;b&gt;</b><br>a\\x1b</div>"
    assert "<td" in html_pairs([("<i>", 3)]) and "&lt;i&gt;" in html_pairs([("<i>", 3)])
    assert len(html_lines(["x" * 10_000])) < 3000
