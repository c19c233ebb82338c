"""Signatures of programs: Ed25519, in OpenSSH's format, by way of the package ``cryptography`` (extra ``sign``).

A signature is an SSHSIG text (OpenSSH's PROTOCOL.sshsig) over ``manifest.json``, which has the digest of every
other member, for the namespace `NAMESPACE`: ``ssh-keygen -Y check-novalidate -n devscope-program`` checks it, too.
"""

import base64
import binascii
import hashlib
import os
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from devscope.errors import ExecutableFormatError, OptionError
from devscope.runtime.paths import checked_path

Key = str | os.PathLike[str]
"""The path of a key: OpenSSH's format or PEM."""

NAMESPACE = b"devscope-program"

_KIND = b"ssh-ed25519"
_MAGIC = b"SSHSIG"
_VERSION = 1
_HASH = b"sha512"
_HASHES = {b"sha256": hashlib.sha256, b"sha512": hashlib.sha512}
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_LINE = 70
_MOST_BYTES = 1 << 16


def sign(message: bytes, key: Key) -> bytes:
    """The signature of a message by a private key without a password. Raises :class:`OptionError` for others."""
    private = _private_key(key)
    public = _public_blob(private.public_key())
    signature = _strings(_KIND, private.sign(_signed_data(message, _HASH)))
    blob = _MAGIC + struct.pack(">I", _VERSION) + _strings(public, NAMESPACE, b"", _HASH, signature)
    text = base64.b64encode(blob).decode()
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return "\n".join([_BEGIN, *lines, _END, ""]).encode()


def signer(message: bytes, signature: bytes) -> str:
    """The fingerprint (as ``ssh-keygen -l`` prints it) of the key that signed a message.

    Raises :class:`ExecutableFormatError` when the signature is damaged, of another kind, or of another message;
    :class:`OptionError` without the package that checks it.
    """
    public, algorithm, raw = _parsed(signature)
    from_bytes, invalid = _verifier()
    try:
        from_bytes(public[-32:]).verify(raw, _signed_data(message, algorithm))
    except (invalid, ValueError):
        raise ExecutableFormatError("the signature is not one of this program") from None
    return _fingerprint(public)


def check_signature(where: str, message: bytes, signature: bytes | None, trusted: Sequence[Key]) -> None:
    """Raises :class:`ExecutableFormatError` unless one of the ``trusted`` public keys signed the message.

    :class:`OptionError` for what is no public key, or no list of them.
    """
    is_path = isinstance(trusted, str | bytes | os.PathLike)
    if is_path or not isinstance(trusted, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        example = [os.fspath(trusted) if is_path else "maker.pub"]  # pyright: ignore[reportUnknownVariableType]
        raise OptionError(f"{trusted!r} is no list of trusted keys", notes=[f"such as trusted_keys={example!r}"])
    keys = {_fingerprint(_public_blob(public)) for path in trusted for public in _public_keys(path)}
    if signature is None:
        raise ExecutableFormatError(
            f"'{where}' is not signed, and only signed programs are trusted",
            notes=["sign it: devscope build --sign-with KEY, or Executable.save(path, sign_with=KEY)"],
        )
    if (found := signer(message, signature)) not in keys:
        raise ExecutableFormatError(
            f"'{where}' is signed by {found}, which is no trusted key",
            notes=[f"trusted: {', '.join(sorted(keys))}"],
        )


def _signed_data(message: bytes, algorithm: bytes) -> bytes:
    return _MAGIC + _strings(NAMESPACE, b"", algorithm, _HASHES[algorithm](message).digest())


def _strings(*parts: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


def _split(data: bytes, count: int) -> list[bytes]:
    """So many strings, and nothing else. Raises :class:`ValueError` or :class:`struct.error`."""
    parts: list[bytes] = []
    for _ in range(count):
        (length,) = struct.unpack_from(">I", data)
        parts.append(data[4 : 4 + length])
        data = data[4 + length :]
        if len(parts[-1]) < length:
            raise ValueError("cut off")
    if data:
        raise ValueError("too long")
    return parts


def _parsed(text: bytes) -> tuple[bytes, bytes, bytes]:
    """The public key's blob, the name of the hash, and the bare signature."""
    try:
        begin, *lines, end = text.decode("ascii").split("\n")[:-1] if len(text) < _MOST_BYTES else [""]
        blob = base64.b64decode("".join(lines), validate=True)
        if (begin, end, blob[:6], blob[6:10]) != (_BEGIN, _END, _MAGIC, struct.pack(">I", _VERSION)):
            raise ValueError("not in OpenSSH's format")
        public, namespace, reserved, algorithm, signature = _split(blob[10:], 5)
        kind, raw_key = _split(public, 2)
        of_kind, raw = _split(signature, 2)
        if (namespace, reserved, kind, of_kind, len(raw_key)) != (NAMESPACE, b"", _KIND, _KIND, 32):
            raise ValueError("of another kind")
        if algorithm not in _HASHES:
            raise ValueError("over another digest")
    except (ValueError, struct.error, binascii.Error) as error:
        raise ExecutableFormatError(
            f"the signature is damaged, or not an Ed25519 one for programs: {error}"
        ) from None
    return public, algorithm, raw


def _fingerprint(public: bytes) -> str:
    return "SHA256:" + base64.b64encode(hashlib.sha256(public).digest()).decode().rstrip("=")


def _public_blob(public: Any) -> bytes:
    return _strings(_KIND, public.public_bytes_raw())


def _read(path: Key) -> bytes:
    path = checked_path(path, "a key", OptionError)
    try:
        if not os.path.isfile(path):
            raise OptionError(f"'{path}' is no file with a key")
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise OptionError(f"the key '{path}' cannot be read: {error}") from None


def _serialization() -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError:
        raise OptionError(
            "signatures need the package 'cryptography'", notes=["pip install 'devscope[sign]'"]
        ) from None
    return serialization


def _verifier() -> tuple[Any, type[Exception]]:
    """What makes a public key of its bytes, and what it raises for a wrong signature."""
    _serialization()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes, InvalidSignature


def _private_key(path: Key) -> Any:
    serialization, data = _serialization(), _read(path)
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    is_ssh = b"BEGIN OPENSSH PRIVATE KEY" in data
    load = serialization.load_ssh_private_key if is_ssh else serialization.load_pem_private_key
    try:
        key = load(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:  # TypeError: it has a password
        raise _no_key(path, "a private", str(error)) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key(path, "a private", "it is of another kind")
    return key


def _public_keys(path: Key) -> list[Any]:
    """The keys of a file: one in PEM, or any number of lines of OpenSSH's."""
    serialization, data = _serialization(), _read(path)
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    is_pem = data.lstrip().startswith(b"-----BEGIN PUBLIC KEY-----")
    load = serialization.load_pem_public_key if is_pem else serialization.load_ssh_public_key
    lines = [data] if is_pem else [line for line in data.splitlines() if line.strip() and line[:1] != b"#"]
    try:
        keys = [load(line) for line in lines]
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _no_key(path, "a public", str(error)) from None
    if not keys or not all(isinstance(key, Ed25519PublicKey) for key in keys):
        raise _no_key(path, "a public", "it is of another kind" if keys else "it is empty")
    return keys


def _no_key(path: Key, which: str, why: str) -> OptionError:
    return OptionError(
        f"'{os.fspath(path)}' is not {which} Ed25519 key in OpenSSH's format or PEM, without a password: {why}",
        notes=["make a pair of them: ssh-keygen -t ed25519 -N '' -f KEY"],
    )
