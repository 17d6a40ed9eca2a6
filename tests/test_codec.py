"""A codec stands between what is serialized and what is stored."""

import base64
import zlib

import pytest
from cryptography.fernet import Fernet, InvalidToken

from lanner.workflow.codec import Codec
from lanner.workflow.serializer import dumps, loads


class Compressed:
    def encode(self, text: str, /) -> str:
        return base64.b85encode(zlib.compress(text.encode())).decode()

    def decode(self, text: str, /) -> str:
        return zlib.decompress(base64.b85decode(text)).decode()


class Encrypted:
    def __init__(self, key: bytes) -> None:
        self._fernet = Fernet(key)

    def encode(self, text: str, /) -> str:
        return self._fernet.encrypt(text.encode()).decode()

    def decode(self, text: str, /) -> str:
        return self._fernet.decrypt(text.encode()).decode()


VALUE = {"secret": ("x" * 10_000, {1, 2}), "é": None}


@pytest.mark.parametrize("codec", [Compressed(), Encrypted(Fernet.generate_key())], ids=["compressed", "encrypted"])
def test_what_a_codec_has_encoded_says_nothing_and_is_read_again(codec: Codec) -> None:
    stored = codec.encode(dumps(VALUE))
    assert "secret" not in stored
    assert "xxxx" not in stored
    assert loads(codec.decode(stored)) == VALUE


def test_a_text_that_another_key_encrypted_is_not_read() -> None:
    stored = Encrypted(Fernet.generate_key()).encode(dumps(VALUE))
    with pytest.raises(InvalidToken):
        Encrypted(Fernet.generate_key()).decode(stored)
