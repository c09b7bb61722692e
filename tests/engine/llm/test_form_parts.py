"""What parts a form has, as it counts for what a request may come to."""

from __future__ import annotations

import os

import pytest

from headgate_engine.llm.bounds import worst_of

BOUNDARY = b"--b"
END = b"--b--\r\n"
SOUND_BYTES = 23


def found(*parts: bytes) -> tuple[int, int, bool]:
    """How many answers a form of these parts has, how many pictures, and whether it has a file."""
    body = b"".join(BOUNDARY + b"\r\n" + part + b"\r\n" for part in parts) + END
    _, _, _, _, choices, (pictures, sound, files, named, spoken) = worst_of("passthrough", body, None)
    assert (files, named, spoken) == (0, 0, False)
    assert sound in (0, len(body) // SOUND_BYTES + 1)
    return choices, pictures, sound > 0


DISPOSITION = b"Content-Disposition: form-data; "
FILES = [
    (DISPOSITION + b'name="file"; filename="a.mp3"\r\n\r\nx', 0, True),
    (b'content-disposition:form-data;filename=a.mp3;name=file\r\n\r\nx', 0, True),
    (DISPOSITION + b"name=\"file\"; filename*=UTF-8''a.mp3\r\n\r\nx", 0, True),
    (DISPOSITION + b'name="file";\r\n filename="a.mp3"\r\n\r\nx', 0, True),
    (b'Content-Type: image/png\r\n' + DISPOSITION + b'name="image"; filename="a"\r\n\r\nx', 1, False),
    (DISPOSITION + b'name="image"; filename="a"\r\ncontent-type:IMAGE/png\r\n\r\nx', 1, False),
    (DISPOSITION + b'name="filename="\r\n\r\nx', 0, False),
    (DISPOSITION + b'name="prompt"\r\n\r\nfilename="a"\r\nContent-Type: image/png', 0, False),
    (DISPOSITION + b'name="file"; filename="a.mp3"\r\n\r\nContent-Type: image/png\r\n\r\n', 0, True),
    (b'name="file"; filename="a.mp3"', 0, False),
]


@pytest.mark.parametrize(("part", "pictures", "file"), FILES)
def test_files_and_pictures(part: bytes, pictures: int, file: bool) -> None:
    assert found(part) == (0, pictures, file)


COUNTS = [
    (b'name="n"\r\n\r\n3', 3),
    (b"name=n\r\n\r\n3", 3),
    (b'NAME="n"\r\nContent-Type: text/plain\r\n\r\n 7', 7),
    (b'name="n"\r\n\r\n99999', 9999),
    (b'name="n"\r\n\r\nx', 0),
    (b'name="nn"\r\n\r\n3', 0),
    (b'filename="n"\r\n\r\n3', 0),
]


@pytest.mark.parametrize(("part", "choices"), COUNTS)
def test_the_number_of_answers(part: bytes, choices: int) -> None:
    assert found(DISPOSITION + part)[0] == choices


def test_the_largest_number_counts() -> None:
    assert found(*(DISPOSITION + b'name="n"\r\n\r\n%d' % number for number in (1, 7, 2)))[0] == 7


def test_what_is_cut_short_or_is_no_form_is_read_to_its_end() -> None:
    whole = BOUNDARY + b"\r\n" + DISPOSITION + b'name="n"; filename="a"\r\nContent-Type: image/png\r\n\r\n5\r\n' + END
    for size in range(2, len(whole)):
        worst_of("passthrough", whole[:size], None)
    worst_of("passthrough", BOUNDARY + os.urandom(100_000), None)
