"""Damage a file the way that hurts: bits, sizes, types, shapes, NaN, structure.

    a file  ->  mutations.mutate(path, rng)  ->  the same file, damaged, and what was done

The structure is changed by the kind of the content: a JSON value is replaced by one of another type, a tensor
gets another dtype, a member of an archive is mutated in turn. A part of the changes is always made in bytes.
Everything random follows from `rng`.
"""

from __future__ import annotations

import gzip
import io
import json
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np
import torch
import zstandard

Mutate = Callable[[bytes, Random], bytes]

NUMBERS: tuple[Any, ...] = (
    0,
    -1,
    1,
    2,
    7,
    255,
    2**31 - 1,
    2**31,
    2**32,
    2**53,
    2**63,
    -(2**63),
    10**30,
    10**400,
    0.5,
    -0.0,
    1e-300,
    1e300,
    float("nan"),
    float("inf"),
    float("-inf"),
)
DEEP = 100_000  # brackets: far more than Python's recursion limit
VALUES: tuple[Any, ...] = (
    *NUMBERS,
    None,
    True,
    False,
    "",
    " ",
    "x",
    "0",
    "../../../etc/passwd",
    "/dev/zero",
    "a" * 300,
    "长" * 5000,
    "\0",
    "a\nb",
    "\ud800",
    "\u202e",
    [],
    {},
    [[]],
    [None],
    [0],
    ["x"],
    {"x": 1},
    {"": None},
    [[[[[[]]]]]],
)
TEXT_PIECES: tuple[bytes, ...] = (
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n",
    b"\n\n\n",
    b"\t",
    b" ",
    b"\x1a",
    "\u2028".encode(),
    "\u202e".encode(),
    "\u0301".encode() * 50,
    b"\xed\xa0\x80",  # a surrogate
    b'"',
    b"'''",
    b"[[",
    b"]]",
    b"{",
    b"#",
    b"|||",
    b"(",
    b")",
    b"-",
    b"*",
    b"<",
    b">",
    b"&#x110000;",
    b"&amp;" * 100,
    b"<e1>",
    b"NaN",
    b"inf",
    b"-1",
    b"1e400",
    b"9" * 5000,
    b"99999999999",
    b"18446744073709551616",
    b"0x",
    b"true",
    b"null",
)
NUMPY_KINDS = (
    "<f2",
    "<f4",
    "<f8",
    ">f4",
    "i1",
    "u1",
    "<i4",
    "<i8",
    "<u4",
    "?",
    "<c8",
    "S3",
    "<U2",
    "<M8[s]",
    "O",
)


def mutate(path: Path, rng: Random, *, structured: bool = True) -> str:
    """Damage one file; returns a description. A file that is damaged already has no structure to rely on."""
    content = path.read_bytes()
    changes = [*(_STRUCTURES.get(kind_of(path, content), ()) if structured else ()), mutate_bytes]
    change = rng.choice(changes)
    try:
        damaged = change(content, rng)
    except _UNSTRUCTURED:  # an earlier mutation left nothing that has this structure
        change = mutate_bytes
        damaged = mutate_bytes(content, rng)
    path.write_bytes(damaged)
    return f"{path.name}: {change.__name__.removeprefix('mutate_')}"


_UNSTRUCTURED = (
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    OSError,
    RuntimeError,
    NotImplementedError,
    OverflowError,
    AttributeError,
    EOFError,
    struct.error,
    zipfile.BadZipFile,
    zstandard.ZstdError,
    RecursionError,
    MemoryError,
)


def kind_of(path: Path, content: bytes) -> str:
    """What the structure of a file is, by its content where that says so, else by its name."""
    if content.startswith(b"\x89HDF"):
        return "hdf5"
    if content.startswith(b"PAR1"):
        return "parquet"
    if content.startswith(b"PK"):
        return "pickle" if path.suffix == ".pkl" else "zip"
    if content.startswith(b"\x1f\x8b"):
        return "gz"
    if content.startswith(b"\x28\xb5\x2f\xfd"):
        return "zst"
    if content.startswith(b"\x93NUMPY"):
        return "npy"
    return {
        ".json": "json",
        ".jsonl": "jsonl",
        ".running": "jsonl",
        ".safetensors": "safetensors",
        ".pkl": "pickle",
        ".ids": "numbers",
        ".bin": "binary",
        ".usearch": "binary",
    }.get(path.suffix, "text")


# ---- bytes ----


def mutate_bytes(content: bytes, rng: Random) -> bytes:
    """Flip, cut, insert or repeat bytes."""
    data = bytearray(content)
    kind = rng.randrange(9)
    here = rng.randrange(len(data) + 1)
    size = rng.choice((1, 2, 4, 8, 64, 1024))
    if kind == 0 and data:
        for _ in range(rng.choice((1, 1, 2, 8, 64))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[here:]
    elif kind == 2:
        data[here : here + size] = bytes(len(data[here : here + size]))
    elif kind == 3:
        data[here : here + size] = b"\xff" * len(data[here : here + size])
    elif kind == 4:
        data[here : here + size] = rng.randbytes(len(data[here : here + size]))
    elif kind == 5:
        del data[here : here + size]
    elif kind == 6:
        data[here:here] = rng.randbytes(size)
    elif kind == 7:
        data[here:here] = data[here : here + size]
    else:
        head = min(len(data), 256)  # headers hold sizes
        start = rng.randrange(head + 1)
        data[start : start + 8] = struct.pack("<q", rng.choice((-1, 0, 1, 2**31, 2**40, 2**62)))
    return bytes(data)


# ---- text ----


def mutate_text(content: bytes, rng: Random) -> bytes:
    """Change lines, fields and numbers."""
    lines = content.split(b"\n")
    here = rng.randrange(len(lines))
    kind = rng.randrange(10)
    if kind == 0:
        del lines[here]
    elif kind == 1:
        lines.insert(here, lines[rng.randrange(len(lines))])
    elif kind == 2:
        rng.shuffle(lines)
    elif kind == 3:
        lines[here] = lines[here] * rng.choice((2, 50, 2000))
    elif kind == 4:
        fields = lines[here].split(rng.choice((b"\t", b" ", b",", b"=", b"|", b":")))
        spot = rng.randrange(len(fields))
        fields[spot] = rng.choice(TEXT_PIECES)
        lines[here] = rng.choice((b"\t", b" ", b",", b"=")).join(fields)
    elif kind == 5:
        spot = rng.randrange(len(lines[here]) + 1)
        lines[here] = lines[here][:spot] + rng.choice(TEXT_PIECES) + lines[here][spot:]
    elif kind == 6:
        lines[here] = b""
    elif kind == 7:
        lines = lines[here : here + 1]
    elif kind == 8:
        lines[here] = b"w" * rng.choice((70_000, 1_000_000))
    else:
        lines = [line.replace(b"\t", b" ") for line in lines]
    return b"\n".join(lines)


def mutate_brackets(content: bytes, rng: Random) -> bytes:
    """Nest deeply, where a format allows brackets."""
    lines = content.split(b"\n")
    here = rng.randrange(len(lines))
    bracket = rng.choice((b"[", b"{", b"(", b"<b>", b'{"a":', b"a.", b"(A0*"))
    lines[here] = lines[here] + b"=" * rng.randrange(2) + bracket * rng.choice((100, DEEP))
    return b"\n".join(lines)


# ---- JSON ----


def mutate_json(content: bytes, rng: Random) -> bytes:
    """Replace, remove, rename or repeat a value."""
    values = json.loads(content)
    return _dump(_change(values, rng), rng)


def mutate_json_text(content: bytes, rng: Random) -> bytes:
    """What JSON allows and Python values do not show: repeated keys, depth, numbers of any length."""
    text = content.decode("utf-8")
    spots = [number for number, letter in enumerate(text) if letter in "{[:,"]
    here = rng.choice(spots) + 1
    piece = rng.choice(
        (
            "[" * DEEP,
            "[" * 900 + "]" * 900 + ",",
            '"polyseme_format":1,',
            '"a":1,"a":2,',
            "9" * 5000 + ",",
            "1e999,",
            "NaN,",
            "\\u0000",
            "//",
            ",",
            '"\\ud800":1,',
        )
    )
    return (text[:here] + piece + text[here:]).encode("utf-8", "surrogatepass")


def _change(values: Any, rng: Random) -> Any:
    """A copy of nested values with one change at a random depth."""
    if isinstance(values, dict) and values and rng.random() < 0.9:
        result = dict(values)
        key = rng.choice(list(values))
        kind = rng.randrange(12)
        if kind == 0:
            del result[key]
        elif kind == 1:
            result[rng.choice(("", "x", key + "s", key.upper(), "a" * 300))] = result.pop(key)
        elif kind == 2:
            result["unknown"] = rng.choice(VALUES)
        elif kind == 3 and len(values) > 1:
            other = rng.choice(list(values))
            result[key], result[other] = result[other], result[key]
        else:
            result[key] = _change(values[key], rng)
        return result
    if isinstance(values, list) and values and rng.random() < 0.9:
        items = list(values)
        here = rng.randrange(len(items))
        kind = rng.randrange(12)
        if kind == 0:
            del items[here]
        elif kind == 1:
            items.insert(here, rng.choice(items))
        elif kind == 2:
            items.insert(here, rng.choice(VALUES))
        elif kind == 3:
            rng.shuffle(items)
        elif kind == 4:
            items = items * 100
        else:
            items[here] = _change(items[here], rng)
        return items
    if isinstance(values, int | float) and not isinstance(values, bool) and rng.random() < 0.6:
        return rng.choice((values + 1, values - 1, -values, float(values), str(values), *NUMBERS))
    return rng.choice(VALUES)


def _dump(values: Any, rng: Random) -> bytes:
    return json.dumps(values, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


def mutate_json_line(content: bytes, rng: Random) -> bytes:
    """Change one line of JSON."""
    lines = content.split(b"\n")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    here = rng.choice(filled)
    lines[here] = rng.choice((mutate_json, mutate_json, mutate_json_text))(lines[here], rng)
    return b"\n".join(lines)


# ---- tensors ----


def mutate_array(values: Any, rng: Random) -> Any:
    """Another dtype, shape or content of an array of numpy."""
    kind = rng.randrange(12)
    if kind <= 2:
        name = rng.choice(NUMPY_KINDS)
        return values.astype(name) if values.dtype.kind != "V" else values.view("u1")
    if kind == 3:
        return values[..., None]
    if kind == 4:
        return values.ravel()
    if kind == 5:
        return values[: len(values) // 2]
    if kind == 6:
        return np.concatenate([values, values[:1]])
    if kind == 7:
        return np.ascontiguousarray(values.T)
    if kind == 8:
        return values[:0]
    if kind == 9:
        return values.reshape(values.shape[::-1])
    filled = values.copy()
    flat = filled.reshape(-1)
    number = rng.choice((np.nan, np.inf, -np.inf, 3e38, -1, 0, 1e-45, 2**31 - 1, 127, 65504, -(2**31)))
    if filled.dtype.kind in "iu":
        info = np.iinfo(filled.dtype)
        number = rng.choice((info.min, info.max, 0, 1, 100 if info.max > 100 else 1))
    with np.errstate(all="ignore"):
        if kind == 10:
            flat[rng.randrange(len(flat))] = number
        else:
            flat[:] = number
    return filled


SAFE_NAMES = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "I16": 2,
    "U16": 2,
    "F16": 2,
    "BF16": 2,
    "I32": 4,
    "U32": 4,
    "F32": 4,
    "F64": 8,
    "I64": 8,
    "U64": 8,
}
NUMPY_OF = {
    "BOOL": "?",
    "U8": "u1",
    "I8": "i1",
    "I16": "<i2",
    "F16": "<f2",
    "I32": "<i4",
    "U32": "<u4",
    "F32": "<f4",
    "F64": "<f8",
    "I64": "<i8",
    "U64": "<u8",
}
SAFE_OF = {np.dtype(kind): name for name, kind in NUMPY_OF.items()}


def mutate_safetensors(content: bytes, rng: Random) -> bytes:
    """Another type, shape, content or name of a tensor; the header fits the data."""
    header, data = _split_safetensors(content)
    metadata = header.pop("__metadata__", None)
    tensors = {
        name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
        for name, entry in header.items()
    }
    name = rng.choice(list(tensors))
    dtype, shape, values = tensors[name]
    kind = rng.randrange(8)
    if kind == 0:
        del tensors[name]
    elif kind == 1:
        tensors[rng.choice(("x", "", name + "s", "softmax.bias", "a" * 300))] = tensors.pop(name)
    elif kind == 2:
        tensors["unknown"] = tensors[name]
    elif kind == 3:
        other = rng.choice(list(tensors))
        tensors[name], tensors[other] = tensors[other], tensors[name]
    elif kind == 4:  # the same bytes as another type
        size = len(values)
        names = [known for known, width in SAFE_NAMES.items() if size % width == 0]
        chosen = rng.choice(names)
        whole = size // SAFE_NAMES[chosen]
        rest = int(np.prod(shape[1:])) if shape else 1
        fits = rest and whole % rest == 0
        tensors[name] = (chosen, [whole // rest, *shape[1:]] if fits else [whole], values)
    elif kind == 5 and metadata is not None:
        metadata = _change(metadata, rng)
        metadata = (
            {str(key): str(value) for key, value in metadata.items()} if isinstance(metadata, dict) else None
        )
    else:
        array = np.frombuffer(values, NUMPY_OF.get(dtype, f"V{SAFE_NAMES[dtype]}")).reshape(shape)
        with np.errstate(all="ignore"):
            array = np.ascontiguousarray(mutate_array(array, rng))
        tensors[name] = (SAFE_OF.get(array.dtype, dtype), list(array.shape), array.tobytes())
    return _join_safetensors(tensors, metadata, rng)


def mutate_safetensors_header(content: bytes, rng: Random) -> bytes:
    """Change the header and leave the data."""
    header, data = _split_safetensors(content)
    text = (
        _dump(_change(header, rng), rng) if rng.random() < 0.8 else mutate_json_text(_dump(header, rng), rng)
    )
    return struct.pack("<Q", len(text)) + text + data


def _split_safetensors(content: bytes) -> tuple[dict[str, Any], bytes]:
    size = struct.unpack("<Q", content[:8])[0]
    header: dict[str, Any] = json.loads(content[8 : 8 + size])
    return header, content[8 + size :]


def _join_safetensors(tensors: dict[str, Any], metadata: Any, rng: Random) -> bytes:
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    data = bytearray()
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(data)


def mutate_npy(content: bytes, rng: Random) -> bytes:
    """Another array in a .npy file."""
    array = np.load(io.BytesIO(content), allow_pickle=False)
    buffer = io.BytesIO()
    np.save(buffer, mutate_array(array, rng), allow_pickle=True)
    return buffer.getvalue()


def mutate_numbers(content: bytes, rng: Random) -> bytes:
    """Another number in a file of uint32."""
    values = np.frombuffer(content, "<u4").copy()
    values[rng.randrange(len(values))] = rng.choice((0, 1, 2, 99, 2**31, 2**32 - 1))
    return values[: rng.choice((len(values), len(values) // 2))].tobytes()


def mutate_pickle(content: bytes, rng: Random) -> bytes:
    """Other tensors, or other objects, in a file of `torch.save`."""
    values = torch.load(io.BytesIO(content), weights_only=True)
    name = rng.choice(list(values))
    kind = rng.randrange(10)
    if kind == 0:
        del values[name]
    elif kind == 1:
        values[rng.choice((0, None, "x", ("a", "b")))] = values.pop(name)
    elif kind == 2:
        values[name] = rng.choice((None, 3, "x", [1], {"a": 1}, values))
    elif kind == 3:
        values = rng.choice(([*values.values()], values[name], 3, {}, None))
    elif kind == 4:
        tensor = values[name]
        dtypes = (torch.bfloat16, torch.float64, torch.complex64, torch.int8, torch.bool, torch.float8_e5m2)
        values[name] = tensor.to(rng.choice(dtypes))
    elif kind == 5:
        values[name] = rng.choice(
            (torch.empty(1, device="meta"), torch.zeros(3).to_sparse(), torch.zeros(()))
        )
    elif kind == 6:
        values[name] = torch.zeros(1).expand(values[name].shape)  # all elements are one
    elif kind == 7:
        values[name] = torch.zeros(1).expand(1 << 20, 1 << 20)  # terabytes in four bytes
    else:
        values[name] = torch.from_numpy(mutate_array(values[name].numpy(), rng))
    buffer = io.BytesIO()
    torch.save(values, buffer, _use_new_zipfile_serialization=content.startswith(b"PK"))
    return buffer.getvalue()


# ---- hdf5 ----


def mutate_hdf5(content: bytes, rng: Random) -> bytes:
    """Other datasets, links and attributes."""
    buffer = io.BytesIO(content)
    with h5py.File(buffer, "r+") as file:
        names: list[str] = []
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        name = rng.choice(names)
        kind = rng.randrange(14)
        values = file[name][()]
        attributes = dict(file[name].attrs)
        if kind == 8:
            spot = "unknown" + "/x" * rng.choice((0, 3, 200))
            file[spot] = values
            return _flushed(file, buffer)
        if kind == 9:
            file[name].attrs[rng.choice(("sentence", "x"))] = rng.choice(
                (0, "x", np.zeros(3), b"\xff", "a b c d")
            )
            return _flushed(file, buffer)
        del file[name]
        if kind <= 4:
            with np.errstate(all="ignore"):
                file[name] = mutate_array(np.asarray(values), rng)
        elif kind == 5:
            file.create_group(name)
        elif kind == 6:
            other = rng.choice(names)
            file[name] = rng.choice(
                (h5py.SoftLink("/" + other), h5py.SoftLink("/" + name), h5py.ExternalLink("x.hdf5", "/a"))
            )
        elif kind == 7:
            file[name] = rng.choice((h5py.Empty("f"), "text", ["a", "b"], np.float32(1), np.nan))
        elif kind == 10:
            file.create_dataset(name, shape=(10**9, 10**4), dtype="f4", chunks=(1024, 1024))
        elif kind == 11:
            file[name] = np.zeros(3, [("a", "f4"), ("b", "i4")])
        elif kind == 12:
            group = file.require_group("loop")
            group["again"] = file["/"]  # a hard link to the root: the tree has no end
            file[name] = values
        else:
            file.create_dataset(
                name, data=values, chunks=True, compression="gzip", fletcher32=True, shuffle=True
            )
        if name in file and isinstance(file.get(name, getlink=True), h5py.HardLink):
            for key, value in attributes.items():
                file[name].attrs[key] = value
        return _flushed(file, buffer)


def _flushed(file: Any, buffer: io.BytesIO) -> bytes:
    file.flush()
    return buffer.getvalue()


# ---- archives ----


def mutate_zip(content: bytes, rng: Random) -> bytes:
    """Change a member, or what the archive says about it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    method, here = zipfile.ZIP_STORED, rng.randrange(len(members))
    name, values = members[here]
    kind = rng.randrange(9)
    if kind == 0:
        del members[here]
    elif kind == 1:
        members.append((name, members[rng.randrange(len(members))][1]))
    elif kind == 2:
        members[here] = (rng.choice(("x", "../x", "/x", "a" * 300, "1.npy", "99.npy", "a\\b")), values)
    elif kind == 3:
        method = rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    else:
        kind_of_member = kind_of(Path(name), values)
        change = rng.choice([*_STRUCTURES.get(kind_of_member, ()), mutate_bytes])
        members[here] = (name, change(values, rng))
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", method) as archive:
        warnings.simplefilter("ignore")  # two members of one name
        for member, values in members:
            archive.writestr(zipfile.ZipInfo(member), values, method)
    return buffer.getvalue()


def mutate_zip_fields(content: bytes, rng: Random) -> bytes:
    """Change one field of a local header or of the directory: version, flags, method, sizes."""
    data = bytearray(content)
    signature, fields = rng.choice(
        (
            (b"PK\3\4", {4: 2, 6: 2, 8: 2, 18: 4, 22: 4, 26: 2, 28: 2}),
            (b"PK\1\2", {4: 2, 6: 2, 8: 2, 10: 2, 20: 4, 24: 4, 28: 2, 30: 2, 32: 2, 38: 4, 42: 4}),
            (b"PK\5\6", {4: 2, 8: 2, 10: 2, 12: 4, 16: 4, 20: 2}),
        )
    )
    spots = [number for number in range(len(data)) if data[number : number + 4] == signature]
    offset, size = rng.choice(list(fields.items()))
    start = rng.choice(spots) + offset
    number = rng.choice((0, 1, 8, 9, 12, 14, 99, 255, 2**15, 2**16 - 1, 2**31, 2**32 - 1))
    data[start : start + size] = (number % (1 << (8 * size))).to_bytes(size, "little")
    return bytes(data)


def mutate_gz(content: bytes, rng: Random) -> bytes:
    """Change what is compressed, or add another member."""
    if rng.random() < 0.2:
        return content + gzip.compress(b"\0" * rng.choice((10, 10**5)))
    return gzip.compress(mutate_text(gzip.decompress(content), rng), mtime=0)


def mutate_zst(content: bytes, rng: Random) -> bytes:
    """Change what is compressed, or add another frame."""
    packer = zstandard.ZstdCompressor()
    if rng.random() < 0.2:
        return content + packer.compress(b"\0" * rng.choice((10, 10**5)))
    plain = zstandard.ZstdDecompressor().decompressobj().decompress(content)
    return packer.compress(mutate_text(plain, rng))


def mutate_parquet(content: bytes, rng: Random) -> bytes:
    """Other columns, types, values and metadata."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    table = parquet.read_table(io.BytesIO(content))
    kind = rng.randrange(9)
    name = rng.choice(table.column_names)
    here = table.column_names.index(name)
    metadata = dict(table.schema.metadata or {})
    if kind == 0:
        table = table.drop_columns([name])
    elif kind == 1:
        table = table.rename_columns([*table.column_names[:here], "x", *table.column_names[here + 1 :]])
    elif kind == 2:
        key = rng.choice(list(metadata))
        if rng.random() < 0.3:
            del metadata[key]
        else:
            metadata[key] = rng.choice(
                (b"", b"-1", b"0", b"x", b"99999999999", b"2,2", b"1", b"3.5", b"\xff")
            )
        table = table.replace_schema_metadata(metadata)
    elif kind == 3:
        table = table.set_column(here, name, arrow.nulls(len(table), table.schema.field(name).type))
    elif kind == 4:
        types = (arrow.string(), arrow.int8(), arrow.float64(), arrow.bool_(), arrow.list_(arrow.float32()))
        chosen = rng.choice(types)
        table = table.set_column(here, name, arrow.nulls(len(table), chosen))
    elif kind == 5:
        order = list(range(len(table)))
        rng.shuffle(order)
        table = table.take(order)
    elif kind == 6:
        table = table.slice(0, rng.randrange(len(table) + 1))
    elif kind == 7:
        column = table["vector"].combine_chunks()
        values = mutate_array(column.flatten().to_numpy().copy(), rng)
        size = column.type.list_size if values.size % column.type.list_size == 0 else 1
        vectors = arrow.FixedSizeListArray.from_arrays(arrow.array(values.ravel()), size)
        table = arrow.table(
            {"sentence": table["sentence"].combine_chunks()[: len(vectors)], "vector": vectors}
        )
        table = table.replace_schema_metadata(metadata)
    else:
        numbers = np.array(table["sentence"].to_numpy())
        numbers[rng.randrange(len(numbers))] = rng.choice((-1, 0, 2**40))
        place = table.column_names.index("sentence")
        table = table.set_column(place, "sentence", arrow.array(numbers))
    buffer = io.BytesIO()
    with parquet.ParquetWriter(buffer, table.schema) as writer:
        writer.write_table(table, row_group_size=rng.choice((1, 2, 1000)))
    return buffer.getvalue()


_STRUCTURES: dict[str, tuple[Mutate, ...]] = {
    "text": (mutate_text, mutate_text, mutate_text, mutate_brackets),
    "json": (mutate_json, mutate_json, mutate_json, mutate_json_text, mutate_text),
    "jsonl": (mutate_json_line, mutate_json_line, mutate_text),
    "safetensors": (mutate_safetensors, mutate_safetensors, mutate_safetensors, mutate_safetensors_header),
    "npy": (mutate_npy,),
    "numbers": (mutate_numbers,),
    "pickle": (mutate_pickle, mutate_pickle, mutate_zip_fields),
    "hdf5": (mutate_hdf5, mutate_hdf5),
    "zip": (mutate_zip, mutate_zip, mutate_zip_fields),
    "gz": (mutate_gz,),
    "zst": (mutate_zst,),
    "parquet": (mutate_parquet, mutate_parquet),
}
