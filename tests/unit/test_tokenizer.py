"""Bytes of an outer terminal to tokens, wherever they are split."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from textual import events
from textual.widget import Widget

from synapse_tui.terminal.events import Modes
from synapse_tui.terminal.input import KeyEvent, MouseEvent, encode_input, encode_key, encode_mouse
from synapse_tui.widgets.driver import TerminalKey, TerminalKeyRelease
from synapse_tui.widgets.driver.outer import (
    QUERY_COLORS,
    Handshake,
    OuterTerminal,
    Reaction,
    keyboard,
    parse_color,
)
from synapse_tui.widgets.driver.tokenizer import (
    ESCAPE_DELAY,
    MAX_STRING,
    PASTE_DELAY,
    STRING_DELAY,
    UNKNOWN,
    FocusToken,
    KeyToken,
    MouseToken,
    PasteToken,
    ReplyToken,
    TextToken,
    Token,
    Tokenizer,
    decode_key,
)

K = KeyEvent


def keys_of(raw: bytes) -> list[KeyToken]:
    """The keys among the tokens of some bytes."""
    return [token for token in tokens_of(raw) if isinstance(token, KeyToken)]


def key_of(raw: bytes) -> KeyToken:
    """The one key that the bytes are."""
    (token,) = tokens_of(raw)
    assert isinstance(token, KeyToken)
    return token


def tokens_of(*chunks: bytes) -> list[Token]:
    """All tokens of some bytes, the pending ones too."""
    tokenizer = Tokenizer()
    found = [token for chunk in chunks for token in tokenizer.feed(chunk)]
    found += tokenizer.timeout()
    assert tokenizer.delay is None
    return [key for token in found for key in (token.singly() if isinstance(token, TextToken) else [token])]


KEYS = [
    # raw, event
    (b"a", K("a", "a")),
    (b"A", K("a", "A", shift=True, shifted="A")),
    (b"1", K("1", "1")),
    (b"!", K("!", "!")),
    (b" ", K("space", " ")),
    (b"@", K("@", "@")),
    ("＠".encode(), K("＠", "＠")),
    ("é".encode(), K("é", "é")),
    ("É".encode(), K("é", "É", shift=True, shifted="É")),
    ("漢".encode(), K("漢", "漢")),
    ("😀".encode(), K("😀", "😀")),
    ("İ".encode(), K("İ", "İ")),  # its lower case is two characters
    (b"\r", K("enter")),
    (b"\t", K("tab")),
    (b"\x7f", K("backspace")),
    (b"\x1b", K("escape")),
    (b"\x00", K("space", ctrl=True)),
    (b"\x01", K("a", ctrl=True)),
    (b"\x03", K("c", ctrl=True)),
    (b"\x08", K("h", ctrl=True)),
    (b"\x0a", K("j", ctrl=True)),
    (b"\x11", K("q", ctrl=True)),
    (b"\x1a", K("z", ctrl=True)),
    (b"\x1c", K("\\", ctrl=True)),
    (b"\x1d", K("]", ctrl=True)),
    (b"\x1e", K("^", ctrl=True)),
    (b"\x1f", K("_", ctrl=True)),
    (b"\x1ba", K("a", alt=True)),
    (b"\x1bA", K("a", alt=True, shift=True, shifted="A")),
    ("\x1bé".encode(), K("é", alt=True)),
    (b"\x1b ", K("space", alt=True)),
    (b"\x1b\r", K("enter", alt=True)),
    (b"\x1b\x7f", K("backspace", alt=True)),
    (b"\x1b\x01", K("a", alt=True, ctrl=True)),
    (b"\x1b[", K("[", alt=True)),
    (b"\x1bO", K("o", alt=True, shift=True, shifted="O")),
    (b"\x1b]", K("]", alt=True)),
    (b"\x1bP", K("p", alt=True, shift=True, shifted="P")),
    (b"\x1b_", K("_", alt=True)),
    (b"\x1bX", K("x", alt=True, shift=True, shifted="X")),
    (b"\x1b^", K("^", alt=True)),
    (b"\x1b[A", K("up")),
    (b"\x1bOA", K("up")),
    (b"\x1b[1;2A", K("up", shift=True)),
    (b"\x1b[1;3D", K("left", alt=True)),
    (b"\x1b[1;5C", K("right", ctrl=True)),
    (b"\x1b[1;8B", K("down", shift=True, alt=True, ctrl=True)),
    (b"\x1b[1;9A", K("up", super=True)),
    (b"\x1b\x1b[A", K("up", alt=True)),
    (b"\x1b\x1bOA", K("up", alt=True)),
    (b"\x1b\x1b[5~", K("page_up", alt=True)),
    (b"\x1b[H", K("home")),
    (b"\x1b[1~", K("home")),
    (b"\x1b[7~", K("home")),
    (b"\x1b[F", K("end")),
    (b"\x1b[4~", K("end")),
    (b"\x1b[8~", K("end")),
    (b"\x1b[E", K("kp_begin")),
    (b"\x1b[2~", K("insert")),
    (b"\x1b[3~", K("delete")),
    (b"\x1b[3;5~", K("delete", ctrl=True)),
    (b"\x1b[5~", K("page_up")),
    (b"\x1b[6~", K("page_down")),
    (b"\x1b[Z", K("tab", shift=True)),
    (b"\x1b[1;6Z", K("tab", shift=True, ctrl=True)),
    (b"\x1bOP", K("f1")),
    (b"\x1b[P", K("f1")),
    (b"\x1b[[A", K("f1")),
    (b"\x1b[[E", K("f5")),
    (b"\x1b[11~", K("f1")),
    (b"\x1b[13~", K("f3")),
    (b"\x1b[1;2P", K("f1", shift=True)),
    (b"\x1b[1;2R", K("f3", shift=True)),
    (b"\x1b[R", K("f3")),
    (b"\x1bO5P", K("f1", ctrl=True)),
    (b"\x1b[15~", K("f5")),
    (b"\x1b[21;2~", K("f10", shift=True)),
    (b"\x1b[24~", K("f12")),
    (b"\x1b[34~", K("f20")),
    (b"\x1b[3$", K("delete", shift=True)),
    (b"\x1b[3^", K("delete", ctrl=True)),
    (b"\x1b[3@", K("delete", ctrl=True, shift=True)),
    (b"\x1b[a", K("up", shift=True)),
    (b"\x1bOa", K("up", ctrl=True)),
    (b"\x1bOM", K("kp_enter")),
    (b"\x1bOj", K("kp_multiply", "*")),
    (b"\x1bOu", K("kp_5", "5")),
    (b"\x1bOI", K("tab")),
    # modifyOtherKeys
    (b"\x1b[27;2;13~", K("enter", shift=True)),
    (b"\x1b[27;5;9~", K("tab", ctrl=True)),
    (b"\x1b[27;3;127~", K("backspace", alt=True)),
    (b"\x1b[27;5;97~", K("a", ctrl=True)),
    (b"\x1b[27;6;65~", K("a", ctrl=True, shift=True, shifted="A")),
    (b"\x1b[27;5;32~", K("space", ctrl=True)),
    (b"\x1b[27;2;32~", K("space", " ", shift=True)),
    (b"\x1b[27;2;33~", K("!", "!", shift=True)),
    (b"\x1b[27;5;27~", K("escape", ctrl=True)),
    # kitty
    (b"\x1b[97u", K("a", "a")),
    (b"\x1b[97;2u", K("a", "A", shift=True)),
    (b"\x1b[97:65;2u", K("a", "A", shift=True, shifted="A")),
    (b"\x1b[49:33;2u", K("1", "!", shift=True, shifted="!")),
    (b"\x1b[97;5u", K("a", ctrl=True)),
    (b"\x1b[105;5u", K("i", ctrl=True)),
    (b"\x1b[93;5u", K("]", ctrl=True)),
    (b"\x1b[97;3u", K("a", alt=True)),
    (b"\x1b[97;9u", K("a", super=True)),
    (b"\x1b[97;17u", K("a", hyper=True)),
    (b"\x1b[97;33u", K("a", meta=True)),
    (b"\x1b[97;193u", K("a", "a", caps_lock=True, num_lock=True)),
    (b"\x1b[97;1:1u", K("a", "a")),
    (b"\x1b[97;1:2u", K("a", "a", kind="repeat")),
    (b"\x1b[97;1:3u", K("a", kind="release")),
    (b"\x1b[97;;97u", K("a", "a")),
    (b"\x1b[97:65;2;65u", K("a", "A", shift=True, shifted="A")),
    (b"\x1b[1089::99;5u", K("с", ctrl=True, base="c")),
    (b"\x1b[0;;12354u", K("", "あ")),
    (b"\x1b[32;5u", K("space", ctrl=True)),
    (b"\x1b[32u", K("space", " ")),
    (b"\x1b[13u", K("enter")),
    (b"\x1b[13;2u", K("enter", shift=True)),
    (b"\x1b[13;2:3u", K("enter", shift=True, kind="release")),
    (b"\x1b[27u", K("escape")),
    (b"\x1b[9;2u", K("tab", shift=True)),
    (b"\x1b[127;5u", K("backspace", ctrl=True)),
    (b"\x1b[57399u", K("kp_0", "0")),
    (b"\x1b[57404;129u", K("kp_5", "5", num_lock=True)),
    (b"\x1b[57414u", K("kp_enter")),
    (b"\x1b[57427~", K("kp_begin")),
    (b"\x1b[57417u", K("kp_left")),
    (b"\x1b[57376u", K("f13")),
    (b"\x1b[57398u", K("f35")),
    (b"\x1b[57441;2u", K("left_shift", shift=True)),
    (b"\x1b[57358;65u", K("caps_lock", caps_lock=True)),
    (b"\x1b[57428u", K("media_play")),
    (b"\x1b[1;1:3A", K("up", kind="release")),
    (b"\x1b[1;5:2A", K("up", ctrl=True, kind="repeat")),
    (b"\x1b[3;1:3~", K("delete", kind="release")),
]


@pytest.mark.parametrize(("raw", "event"), KEYS, ids=[repr(raw) for raw, _ in KEYS])
def test_key_alone_in_pieces_and_between_others(raw, event):
    assert tokens_of(raw) == [KeyToken(event, raw)]
    assert tokens_of(*(raw[i : i + 1] for i in range(len(raw)))) == [KeyToken(event, raw)]
    if raw not in {b"\x1b", b"\x1b[", b"\x1bO", b"\x1b]", b"\x1bP", b"\x1b_"}:
        # those are told from the beginning of a sequence only by the pause after them
        assert tokens_of(b"x" + raw + b"\r")[1] == KeyToken(event, raw)


@pytest.mark.parametrize(("raw", "event"), KEYS, ids=[repr(raw) for raw, _ in KEYS])
def test_what_a_kitty_child_gets_means_the_same_key(raw, event):
    for flags in (25, 27, 29, 31):
        data = encode_key(event, Modes(kitty_flags=flags))
        if event.kind == "release" and not flags & 2:
            assert data == b""
            continue
        again = key_of(data).event
        assert (again.key, again.text, again.modifiers, again.shift) == (
            event.key,
            event.text,
            event.modifiers,
            event.shift,
        )
        assert again.kind == event.kind or (event.kind == "repeat" and not flags & 2)


@pytest.mark.parametrize("raw", [raw for raw, _ in KEYS if not raw.endswith(b"u") and b";1:" not in raw])
def test_legacy_keys_pass_byte_exact(raw):
    token = key_of(raw)
    cursor = raw == b"\x1bOA"  # the child is not in application mode
    enhanced = (
        raw.startswith((b"\x1b[27;", b"\x1b[[", b"\x1b[P", b"\x1b[R")) or b":" in raw or b"\x1bO" in raw[:2]
    )
    if not cursor and not enhanced:
        assert encode_input(token.event, token.raw, Modes()) == raw


REPLIES = [
    b"\x1b[?62;4c",
    b"\x1b[>1;10;0c",
    b"\x1b[?0u",
    b"\x1b[?31u",
    b"\x1b[?2026;2$y",
    b"\x1b[4;1$y",
    b"\x1b[12;40R",
    b"\x1b[1;80R",
    b"\x1b[?12;40R",
    b"\x1b[0n",
    b"\x1b[?997;1n",
    b"\x1b[8;24;80t",
    b"\x1b[4;480;640t",
    b"\x1b[48;24;80;480;640t",
    b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
    b"\x1b]11;rgb:0000/0000/0000\x07",
    b"\x1b]4;1;rgb:ffff/0000/0000\x1b\\",
    b"\x1b]52;c;aGVsbG8=\x07",
    b"\x1b]52;c;\x1b\\",
    b"\x1bP>|kitty(0.39.0)\x1b\\",
    b"\x1bP1$r0m\x1b\\",
    b"\x1bP0+r\x1b\\",
    b"\x1bP!|00000000\x1b\\",
    b"\x1b_Gi=31;OK\x1b\\",
    b"\x1b]l my title\x1b\\",
]


@pytest.mark.parametrize("raw", REPLIES)
def test_replies_are_no_keys(raw):
    assert tokens_of(raw) == [ReplyToken(raw)]
    assert tokens_of(*(raw[i : i + 1] for i in range(len(raw)))) == [ReplyToken(raw)]
    assert tokens_of(b"a" + raw + b"b\x1b" + raw) == [
        KeyToken(K("a", "a"), b"a"),
        ReplyToken(raw),
        KeyToken(K("b", "b"), b"b"),
        KeyToken(K("escape"), b"\x1b"),
        ReplyToken(raw),
    ]


@pytest.mark.parametrize("raw", REPLIES)
def test_a_reply_that_is_cut_off_types_nothing(raw):
    for length in range(3, len(raw)):
        pieces = tokens_of(raw[:length])
        assert not [token for token in pieces if isinstance(token, KeyToken) and token.event.text]


class TestPaste:
    def test_is_whole_with_everything_in_it(self):
        text = "a\x1b[A\x1b]11;?\x07\x03\r\nb\rc\t漢"
        raw = b"\x1b[200~" + text.encode() + b"\x1b[201~"
        assert tokens_of(raw + b"x") == [
            PasteToken("a\x1b[A\x1b]11;?\x07\x03\nb\nc\t漢"),
            KeyToken(K("x", "x"), b"x"),
        ]

    def test_end_mark_split_anywhere(self):
        raw = b"\x1b[200~one\x1b[20\x1b[201~"
        for at in range(len(raw)):
            assert tokens_of(raw[:at], raw[at:]) == [PasteToken("one\x1b[20")]

    def test_waits_long_and_then_ends(self):
        tokenizer = Tokenizer()
        assert tokenizer.feed(b"\x1b[200~half\r") == []
        assert tokenizer.delay == PASTE_DELAY
        assert tokenizer.timeout() == [PasteToken("half\n")]
        assert tokenizer.feed(b"k") == [KeyToken(K("k", "k"), b"k")]

    def test_empty_paste_and_stray_end(self):
        assert tokens_of(b"\x1b[200~\x1b[201~") == [PasteToken("")]
        assert tokens_of(b"\x1b[201~") == []

    def test_broken_utf8_is_replaced(self):
        assert tokens_of(b"\x1b[200~\xff\x1b[201~") == [PasteToken("\ufffd")]

    def test_several_in_a_row(self):
        assert tokens_of(b"\x1b[200~a\x1b[201~\x1b[200~b\x1b[201~") == [PasteToken("a"), PasteToken("b")]


class TestEscape:
    def test_waits_a_moment(self):
        tokenizer = Tokenizer()
        assert tokenizer.feed(b"\x1b") == []
        assert tokenizer.delay == ESCAPE_DELAY
        assert tokenizer.timeout() == [KeyToken(K("escape"), b"\x1b")]
        assert tokenizer.delay is None

    def test_twice_is_two_keys(self):
        assert tokens_of(b"\x1b\x1b") == [KeyToken(K("escape"), b"\x1b")] * 2
        assert tokens_of(b"\x1b\x1b\x1b") == [KeyToken(K("escape"), b"\x1b")] * 3

    def test_before_mouse_focus_and_paste_is_a_key(self):
        escape = KeyToken(K("escape"), b"\x1b")
        assert tokens_of(b"\x1b\x1b[I") == [escape, FocusToken(True)]
        assert tokens_of(b"\x1b\x1b[200~x\x1b[201~") == [escape, PasteToken("x")]
        assert tokens_of(b"\x1b\x1b[<0;1;1M") == [escape, MouseToken(MouseEvent(0, 0, 1))]


class TestMouse:
    @pytest.mark.parametrize(
        "event",
        [
            MouseEvent(0, 0, 1),
            MouseEvent(99, 40, 3, "release"),
            MouseEvent(5, 5, 0, "move"),
            MouseEvent(5, 5, 2, "move"),
            MouseEvent(5, 5, 0, "wheel_up", shift=True),
            MouseEvent(5, 5, 0, "wheel_right", ctrl=True, alt=True),
            MouseEvent(5, 5, 8),
            MouseEvent(300, 200, 11, "release"),
        ],
    )
    def test_sgr_round_trip(self, event):
        raw = encode_mouse(event, Modes(mouse=1003, mouse_encoding="sgr"))
        assert tokens_of(raw) == [MouseToken(event)]

    def test_x10(self):
        assert tokens_of(b"\x1b[M !!a") == [MouseToken(MouseEvent(0, 0, 1)), KeyToken(K("a", "a"), b"a")]
        assert tokens_of(b"\x1b[M", b"#", b"\xff\xfe") == [MouseToken(MouseEvent(222, 221, 0, "release"))]
        assert tokens_of(b"\x1b[M !") == []

    def test_outside_of_the_screen(self):
        assert tokens_of(b"\x1b[<35;-3;5M") == []
        assert tokens_of(b"\x1b[<35;0;5M") == []


def test_focus():
    assert tokens_of(b"\x1b[I\x1b[O") == [FocusToken(True), FocusToken(False)]


def test_text_of_an_input_method_is_a_key_for_each_character():
    raw = b"\x1b[0;;12354:12356u"
    assert tokens_of(raw) == [KeyToken(K("", "あ"), raw), KeyToken(K("", "い"), b"")]


def test_unknown_sequences_keep_their_bytes():
    for raw in (b"\x1b[99~", b"\x1b[1;2", b"\x1b[57344u"):
        assert tokens_of(raw) == [KeyToken(UNKNOWN, raw)]


def test_broken_characters_keep_their_bytes():
    for raw in (b"\xff", b"\x80", b"\xe3", b"\xe3\x81", b"\xf0\x9f\x98"):
        tokens = keys_of(raw)
        assert tokens[0].event.text == "\ufffd"
        assert b"".join(token.raw for token in tokens) == raw
    assert [token.raw for token in keys_of(b"\xe3a")] == [b"\xe3", b"a"]


class TestStrings:
    def test_cancelled(self):
        assert tokens_of(b"\x1b]11;rgb\x18a") == [KeyToken(K("a", "a"), b"a")]

    def test_aborted_by_another_sequence(self):
        assert tokens_of(b"\x1b]11;rgb\x1b[A") == [KeyToken(K("up"), b"\x1b[A")]

    def test_bell_ends_only_operating_system_commands(self):
        raw = b"\x1bP1$r\x07\x1b\\"
        assert tokens_of(raw) == [ReplyToken(raw)]

    def test_waits_for_the_rest(self):
        tokenizer = Tokenizer()
        tokenizer.feed(b"\x1b]52;c;")
        assert tokenizer.delay == STRING_DELAY
        assert tokenizer.timeout() == []
        assert tokenizer.feed(b"a") == [KeyToken(K("a", "a"), b"a")]

    def test_an_endless_one_is_skipped(self):
        tokenizer = Tokenizer()
        tokenizer.feed(b"\x1b]52;c;")
        chunk = b"A" * (1 << 20)
        for _ in range(MAX_STRING // len(chunk) + 2):
            assert tokenizer.feed(chunk) == []
        assert tokenizer.feed(b"\x07b") == [KeyToken(K("b", "b"), b"b")]


PIECES = (
    [raw for raw, _ in KEYS]
    + REPLIES
    + [b"\x1b[200~pa\x1bste\x1b[201~", b"\x1b[<0;3;4M", b"\x1b[I", b"\xff", b"\x1b[1;"]
)


@given(st.lists(st.sampled_from(PIECES), max_size=8), st.data())
def test_splits_change_nothing(pieces, data):
    raw = b"".join(pieces)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(raw)), max_size=6)))
    chunks = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert tokens_of(*chunks) == tokens_of(raw)


@given(st.binary(max_size=200), st.data())
@example(b"\x1b[200~\x1b]\x1bP\x1b[M", None)
def test_any_bytes_give_tokens_and_never_raise(raw, data):
    tokens = tokens_of(raw)
    if data is not None:
        at = data.draw(st.integers(0, len(raw)))
        assert tokens_of(raw[:at], raw[at:]) == tokens
    for token in tokens:
        if isinstance(token, KeyToken):
            for flags in (0, 1, 5, 15, 31):
                encode_input(token.event, token.raw, Modes(kitty_flags=flags))


@given(st.text(st.characters(blacklist_categories=["Cc", "Cs"]), max_size=50))
def test_text_arrives_as_it_was_typed(text):
    tokens = keys_of(text.encode())
    assert "".join(token.event.text for token in tokens) == text
    assert b"".join(encode_input(token.event, token.raw, Modes()) for token in tokens) == text.encode()


def test_many_keys_at_once_are_one_token():
    tokenizer = Tokenizer()
    run = "0123456789 漢字é😀~"
    few = run[:15]
    assert [*tokenizer.feed(few.encode())] == TextToken(few).singly()
    assert tokenizer.feed(run.encode() + b"\r" + run.encode()) == [
        TextToken(run),
        KeyToken(K("enter"), b"\r"),
        TextToken(run),
    ]
    assert tokenizer.feed(b"\x1b[200~" + run.encode() + b"\x1b[201~") == [PasteToken(run)]
    assert tokenizer.feed(b"x" * 5000) == [TextToken("x" * 4096), TextToken("x" * 904)]


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=16, max_size=60))
def test_the_keys_of_a_token_are_those_of_its_bytes(text):
    (token,) = Tokenizer().feed(text.encode())
    assert isinstance(token, TextToken)
    tokenizer = Tokenizer()
    assert token.singly() == [key for each in text for key in tokenizer.feed(each.encode())]


@pytest.mark.parametrize(
    "chunk",
    [
        b"a" * 512,
        b"a" * 15 + b"\r",
        b"\x1b[1;5A" * 80,
        b"\x1b" * 512,
        b"\x1b[" + b"1;" * 2040,
        b"\x1b]52;c;" + b"A" * 4000,
        b"\x1b[200~" + b"a" * 4000,
        "漢".encode() * 170,
    ],
    ids=["text", "lines", "keys", "escapes", "csi", "string", "paste", "wide"],
)
def test_linear_time(chunk):
    def seconds(count: int) -> float:
        tokenizer = Tokenizer()
        begin = time.process_time()
        for _ in range(count):
            tokenizer.feed(chunk)
        return time.process_time() - begin

    seconds(5)
    small, large = min(seconds(10) for _ in range(3)), min(seconds(80) for _ in range(2))
    assert large < small * 8 * 4 + 0.05


# -- Textual's names for the keys of the outer terminal ---


@pytest.mark.parametrize(
    ("raw", "name", "character"),
    [
        (b"a", "a", "a"),
        (b"A", "A", "A"),
        (b"1", "1", "1"),
        (b"@", "at", "@"),
        (b"/", "slash", "/"),
        (b"-", "minus", "-"),
        (b"+", "plus", "+"),
        (b"?", "question_mark", "?"),
        (b" ", "space", " "),
        ("漢".encode(), "漢", "漢"),
        ("＠".encode(), "fullwidth_commercial_at", "＠"),
        (b"\r", "enter", "\r"),
        (b"\t", "tab", "\t"),
        (b"\x1b", "escape", "\x1b"),
        (b"\x7f", "backspace", "\x7f"),
        (b"\x08", "backspace", None),
        (b"\x00", "ctrl+space", None),
        (b"\x01", "ctrl+a", None),
        (b"\x11", "ctrl+q", None),
        (b"\x1d", "ctrl+right_square_bracket", None),
        (b"\x1b[93;5u", "ctrl+right_square_bracket", None),
        (b"\x1c", "ctrl+backslash", None),
        (b"\x1e", "ctrl+circumflex_accent", None),
        (b"\x1f", "ctrl+underscore", None),
        (b"\x1b[Z", "shift+tab", None),
        (b"\x1b[9;2u", "shift+tab", None),
        (b"\x1b[5~", "pageup", None),
        (b"\x1b[6;5~", "ctrl+pagedown", None),
        (b"\x1b[1;6A", "ctrl+shift+up", None),
        (b"\x1bOP", "f1", None),
        (b"\x1b[24~", "f12", None),
        (b"\x1b[1;2P", "shift+f1", None),
        (b"\x1b\r", "alt+enter", None),
        (b"\x1b[13;2u", "shift+enter", None),
        (b"\x1bx", "alt+x", None),
        (b"\x1bX", "alt+shift+x", None),
        (b"\x1bb", "ctrl+left", None),
        (b"\x1bf", "ctrl+right", None),
        (b"\x1b\x7f", "ctrl+w", None),
        (b"\x1b[105;5u", "ctrl+i", None),
        (b"\x1b[97;9u", "super+a", None),
        (b"\x1b[57414u", "enter", None),
        (b"\x1b[57417u", "left", None),
        (b"\x1b[57404;129u", "5", "5"),
        (b"\x1b[57441;2u", "shift+left_shift", None),
        (b"\x1b[99~", "<unknown>", None),
    ],
)
def test_name(raw, name, character):
    key = TerminalKey(decode_key(raw), raw)
    assert (key.key, key.character) == (name, character)
    assert key.is_printable is (character is not None and character.isprintable())


def test_a_key_is_handled_like_textuals_own():
    key = TerminalKey(KeyEvent.of_text("a"), b"a")
    assert isinstance(key, events.Key)
    assert key.handler_name == "on_key" == events.Key.handler_name
    copy = key.copy()
    assert (copy.key, copy.event, copy.raw) == (key.key, key.event, key.raw)
    assert isinstance(copy, TerminalKey)


def test_a_release_is_no_key_to_anyone_who_does_not_ask():
    release = TerminalKeyRelease(KeyEvent("q", ctrl=True, kind="release"))
    assert release.handler_name == "on_terminal_key_release"
    assert not hasattr(Widget, release.handler_name)
    assert (release.key, release.character) == ("<release>", None)
    assert release.event.key == "q"


# -- What the outer terminal tells about itself, and what is said to it in return ---


XTERM = {"TERM": "xterm-256color"}


@pytest.mark.parametrize(
    ("text", "color"),
    [
        ("rgb:ffff/8080/0000", (255, 128, 0)),
        ("rgb:ff/80/00", (255, 128, 0)),
        ("rgb:f/8/0", (255, 136, 0)),
        ("rgb:fff/800/000", (255, 128, 0)),
        ("rgba:ffff/8080/0000/ffff", (255, 128, 0)),
        ("#ff8000", (255, 128, 0)),
        ("", None),
        ("red", None),
        ("rgb:1/2", None),
        ("rgb:12345/0/0", None),
    ],
)
def test_colors(text, color):
    assert parse_color(text) == color


@pytest.mark.parametrize(
    ("reply", "name", "value"),
    [
        (b"\x1b]10;rgb:ff/ff/ff\x07", "foreground", (255, 255, 255)),
        (b"\x1b]11;#102030\x1b\\", "background", (16, 32, 48)),
        (b"\x1b]12;rgb:0/0/0\x1b\\", "cursor", (0, 0, 0)),
        (b"\x1b[?2026;2$y", "modes", {2026: 2}),
        (b"\x1b[?997;2n", "scheme_dark", False),
        (b"\x1bP>|xterm(390)\x1b\\", "version", "xterm(390)"),
        *(
            (reply, "", None)
            for reply in (b"\x1b[>41;390;0c", b"\x1b[24;80R", b"\x1b]11;nonsense\x07", b"\x1b]99;1;x\x07")
        ),
        *((reply, "", None) for reply in (b"\x1b]52;c;aGVsbG8=\x07", b"\x1b[?1;2;3n")),
    ],
)
def test_replies(reply, name, value):
    outer = OuterTerminal()
    Handshake(XTERM, mouse=True, outer=outer).take(reply)
    assert outer == (replace(OuterTerminal(), **{name: value}) if name else OuterTerminal())


def test_dark_by_its_word_or_its_background():
    outer = OuterTerminal()
    assert outer.dark is None
    outer.background = (250, 250, 250)
    assert outer.dark is False
    outer.background = (20, 20, 40)
    assert outer.dark is True
    outer.scheme_dark = False
    assert outer.dark is False


class TestHandshake:
    def start(self, environ: dict[str, str] = XTERM, *, mouse: bool = True) -> tuple[Handshake, str]:
        outer = OuterTerminal()
        handshake = Handshake(environ, mouse=mouse, outer=outer)
        return handshake, handshake.begin()

    def test_modes_that_it_knows(self):
        handshake, _ = self.start()
        assert handshake.take(b"\x1b[?2026;2$y") == Reaction(synchronized=True)
        assert handshake.take(b"\x1b[?2031;2$y") == Reaction("\x1b[?2031h")
        assert handshake.take(b"\x1b[?2026;0$y") == Reaction()
        assert "\x1b[?2031l" in handshake.end()

    def test_colours_are_asked_again_when_the_scheme_changes(self):
        handshake, _ = self.start()
        assert handshake.take(b"\x1b[?997;1n") == Reaction(changed=True)
        assert handshake.take(b"\x1b[?997;1n") == Reaction(changed=True)
        assert handshake.take(b"\x1b[?997;2n") == Reaction(QUERY_COLORS, changed=True)

    @pytest.mark.parametrize(
        ("reply", "wide"), [(b"\x1b[2;2R", False), (b"\x1b[2;3R", True), (b"\x1b[1;3R", None)]
    )
    def test_the_width_of_signs_is_measured(self, reply, wide):
        handshake, written = self.start()
        assert "\x1b[2;1H▲\x1b[6n" in written
        handshake.take(reply)
        assert handshake._outer.wide_signs is wide

    def test_keys_for_the_child(self):
        handshake, _ = self.start()
        assert handshake.keyboard(3) == ""  # not pushed yet, but remembered
        assert handshake.take(b"\x1b[?0u") == Reaction("\x1b[>7u")
        assert handshake.keyboard(7) == ""
        assert handshake.keyboard(0) == "\x1b[=5u"
        assert handshake.resume() == "\x1b[=5u"

    def test_missed_settings_are_made_up_for_by_the_last_of_each_kind(self):
        handshake, _ = self.start()
        handshake.missed("x\x1b[?25l\x1b[2 q\x1b]22;text\x07")
        handshake.missed("\x1b[?25h\x1b]2;title\x07 and text")
        assert handshake.resume() == "\x1b[?25h\x1b[2 q\x1b]22;text\x07\x1b]2;title\x07"
        assert handshake.resume() == ""


@pytest.mark.parametrize(
    ("child", "outer"), [(0, 5), (1, 5), (2, 7), (7, 7), (8, 29), (15, 31), (31, 31), (16, 5), (4, 5)]
)
def test_keyboard_flags(child, outer):
    assert keyboard(child) == outer
