"""Whatever a host sends, however it is cut: the same answers or a HostError, never a forgery."""

from __future__ import annotations

from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.collect.frames import SLACK_BYTES, Answer, FrameReader
from commcheck.errors import ConnectionLost, HostError

NONCE = "0123456789abcdef" * 2
OTHER = "f" * 32

# Bytes that hurt: newlines, halves of markers, other people's nonces.
pieces = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"\n", b"\n\n", NONCE[:20].encode(), b"\n" + NONCE[:31].encode(), b"\x00"]),
    st.sampled_from([f"\n{OTHER} end 1 0 1.0 plain\n".encode(), b"bye\n", b"\n \n"]),
)
outputs = st.lists(pieces, max_size=6).map(b"".join)


def marker(words: str) -> bytes:
    return f"\n{NONCE} {words}\n".encode()


def stream(answers: list[bytes], noise: list[bytes]) -> bytes:
    """One of the two streams, as the runner writes it; noise between the answers."""
    text = noise[0]
    for number, answer in enumerate(answers):
        text += marker(f"begin {number} {number}.25")
        text += answer
        text += marker(f"end {number} {number % 256} {number}.75 plain")
        text += noise[number + 1]
    return text + marker("bye")


def read(chunks: list[tuple[str, bytes]], caps: list[int]) -> tuple[FrameReader, list[Answer]]:
    reader = FrameReader(NONCE)
    reader.expect(caps)
    return reader, [answer for name, data in chunks for answer in reader.feed(name, data)]


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[tuple[bytes, bytes]], list[tuple[str, bytes]]]:
    """Answers, and a valid conversation that carries them in chunks of any size and order."""
    answers = draw(st.lists(st.tuples(outputs, outputs), min_size=1, max_size=5))
    rests = {}
    for index, name in enumerate(("out", "err")):
        noise = draw(st.lists(outputs, min_size=len(answers) + 1, max_size=len(answers) + 1))
        rests[name] = stream([answer[index] for answer in answers], noise)
    # Sizes and turns that come again and again: to draw each one for itself took most of the time.
    sizes = cycle(draw(st.lists(st.integers(1, 9) | st.integers(1, 400), min_size=1, max_size=5)))
    turns = cycle(draw(st.lists(st.sampled_from(["out", "err"]), min_size=1, max_size=5)))
    chunks = []
    while rests["out"] or rests["err"]:
        name = next(turns)
        name = name if rests[name] else {"out": "err", "err": "out"}[name]
        size = next(sizes)
        chunks.append((name, rests[name][:size]))
        rests[name] = rests[name][size:]
    return answers, chunks


@settings(max_examples=40)
@given(conversations())
def test_any_chunking_gives_the_same_answers(
    conversation: tuple[list[tuple[bytes, bytes]], list[tuple[str, bytes]]],
) -> None:
    sent, chunks = conversation
    reader, got = read(chunks, [1 << 20] * (len(sent) - 1))
    assert [(answer.stdout, answer.stderr) for answer in got] == sent
    assert [answer.number for answer in got] == list(range(len(sent)))
    assert [(answer.started_s, answer.ended_s) for answer in got] == [
        (number + 0.25, number + 0.75) for number in range(len(sent))
    ]
    assert reader.finished
    assert reader.left_over() == []


@settings(max_examples=40)
@given(conversations(), st.data())
def test_a_cut_conversation_gives_a_beginning_of_the_answers(
    conversation: tuple[list[tuple[bytes, bytes]], list[tuple[str, bytes]]], data: st.DataObject
) -> None:
    sent, chunks = conversation
    kept = data.draw(st.integers(0, len(chunks) - 1))
    reader, got = read(chunks[:kept], [1 << 20] * (len(sent) - 1))
    assert [(answer.stdout, answer.stderr) for answer in got] == sent[: len(got)]
    # The leave is taken on stdout; what stderr still holds then is no answer.
    assert not reader.finished or len(got) == len(sent)
    for answer in reader.left_over():
        out, err = sent[answer.number]
        assert out.startswith(answer.stdout.removesuffix(b"\n"))
        assert err.startswith(answer.stderr.removesuffix(b"\n"))


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["out", "err"]),
            st.one_of(
                outputs,
                st.builds(
                    lambda kind, number, rest: marker(f"{kind} {number}{rest}"),
                    st.sampled_from(["begin", "end", "bye", "no", ""]),
                    st.integers(-1, 4),
                    st.sampled_from([" 1.0", " 0 1.0 plain", "", " x", " 999 1 y", " - 2.0 sudo"]),
                ),
            ),
        ),
        max_size=20,
    )
)
def test_true_markers_in_any_order_raise_a_host_error_at_most(
    chunks: list[tuple[str, bytes]],
) -> None:
    reader = FrameReader(NONCE)
    reader.expect([10, 10])
    numbers = []
    try:
        for name, data in chunks:
            numbers += [answer.number for answer in reader.feed(name, data)]
    except HostError as error:
        assert error.code == "protocol"
    assert numbers == list(range(len(numbers)))
    assert all(len(answer.stdout) <= 1 << 20 for answer in reader.left_over())
    assert isinstance(reader.last_words, str)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(["out", "err"]), st.binary(max_size=200)), max_size=20))
def test_who_does_not_know_the_nonce_begins_nothing(chunks: list[tuple[str, bytes]]) -> None:
    reader, got = read(chunks, [100])
    assert got == []
    assert not reader.begun
    assert reader.last_words.isprintable()


def test_a_number_is_answered_once() -> None:
    again = marker("begin 0 1.0") + marker("end 0 0 1.0 plain") + marker("begin 0 2.0")
    with pytest.raises(ConnectionLost, match="begin of 0 after answer 0"):
        FrameReader(NONCE).feed("out", again)


@pytest.mark.parametrize("chunk", [1 << 16, 999])
def test_a_flood_within_a_command_is_cut_off(chunk: int) -> None:
    reader = FrameReader(NONCE)
    reader.expect([1000])
    for name in ("out", "err"):
        reader.feed(name, marker("begin 0 1.0") + marker("end 0 0 1.0 plain"))
    reader.feed("out", marker("begin 1 2.0"))
    taken = 0
    with pytest.raises(ConnectionLost) as caught:
        while taken < 100_000_000:
            taken += chunk
            reader.feed("out", b"x" * chunk)
    assert caught.value.code == "output-flood"
    assert taken <= 1000 + SLACK_BYTES + chunk
    (answer,) = reader.left_over()
    assert (answer.stdout, answer.truncated) == (b"x" * 1000, True)


def test_a_flood_of_noise_is_cut_off() -> None:
    reader = FrameReader(NONCE)
    with pytest.raises(ConnectionLost, match="do not end"):
        for _ in range(10_000):
            reader.feed("err", b"\n" * 1000)


def test_a_marker_without_an_end_is_cut_off() -> None:
    reader = FrameReader(NONCE)
    with pytest.raises(ConnectionLost) as caught:
        reader.feed("out", f"\n{NONCE} ".encode() + b"b" * 1000)
    assert caught.value.code == "protocol"


def test_a_byte_at_a_time_costs_no_more_than_linear_time() -> None:
    reader = FrameReader(NONCE)
    reader.feed("out", marker("begin 0 1.0"))
    data = b"\n" * 200_000
    for index in range(len(data)):
        reader.feed("out", data[index : index + 1])
    reader.feed("err", marker("begin 0 1.0") + marker("end 0 0 1.0 plain"))
    (answer,) = reader.feed("out", marker("end 0 0 2.0 plain"))
    assert answer.stdout == data


@pytest.mark.parametrize(
    ("out", "err", "words"),
    [
        (b"", b"", ""),
        (
            b"\x1b[31m\r\n \n  This account is not available.\r\n",
            b"",
            "This account is not available.",
        ),
        (b"", b"env: sh: No such file\n", "env: sh: No such file"),
        (b"\xff\x00caf\xc3\xa9\n", b"", "\\xffcafé"),
        (b"x" * 500 + b"\n", b"", "x" * 200),
    ],
)
def test_last_words(out: bytes, err: bytes, words: str) -> None:
    reader = FrameReader(NONCE)
    for name, data in (("out", out), ("err", err)):
        if data:
            reader.feed(name, data)
    assert reader.last_words == words
