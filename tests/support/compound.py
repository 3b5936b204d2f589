"""Office files of 1997 to 2003, made by hand, as small as they can be."""

from __future__ import annotations

import struct

END = 0xFFFF_FFFE
FREE = 0xFFFF_FFFF
FAT = 0xFFFF_FFFD
URL = "https://example.org/linked.html"


def compound(streams: dict[str, bytes]) -> bytes:
    """A compound file of one sector of FAT, one or two of directory, and streams of 4096 bytes and
    more.
    """
    names = sorted(streams, key=lambda name: (len(name), name.upper()))
    rooms = [streams[name].ljust(4096, b"\0") for name in names]
    rooms = [room + bytes(-len(room) % 512) for room in rooms]
    directory = -(-(len(names) + 1) // 4)
    fat = [FAT, *range(2, directory + 1), END]
    starts = []
    for room in rooms:
        starts.append(len(fat))
        fat += [*range(len(fat) + 1, len(fat) + len(room) // 512), END]
    entries = [_entry("Root Entry", 5, 1, END, 0)]
    for number, (name, start, room) in enumerate(zip(names, starts, rooms, strict=True), 1):
        entries.append(
            _entry(name, 2, FREE, start, len(room), number + 1 if number < len(names) else FREE)
        )
    head = (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
        + bytes(16)
        + struct.pack("<HHHHH6xIIIIIIIII", 0x3E, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, 4096, END, 0, END, 0)
    )
    head += struct.pack("<109I", 0, *[FREE] * 108)
    table = struct.pack("<128I", *fat, *[FREE] * (128 - len(fat)))
    return head + table + b"".join(entries).ljust(512 * directory, b"\0") + b"".join(rooms)


def _entry(name: str, kind: int, child: int, start: int, size: int, right: int = FREE) -> bytes:
    text = name.encode("utf-16-le")
    return text.ljust(64, b"\0") + struct.pack(
        "<HBBIII36xIII", len(text) + 2, kind, 1, FREE, right, child, start, size, 0
    )


def doc(flags: int = 0, version: int = 0xC1) -> bytes:
    """Two pieces, of one byte and of two bytes per character."""
    first = f'Caf\xe9 \x13 HYPERLINK "{URL}" \x14the link\x15 here\r'.encode("cp1252")
    second = "Приве́т\x07\x13 PAGE \x15end\r".encode("utf-16-le")
    main = bytearray(4096)
    struct.pack_into("<HH", main, 0, 0xA5EC, version)
    struct.pack_into("<H", main, 0x0A, 0x0200 | flags)
    lengths = 0, len(first), len(first) + len(second) // 2
    places = b"".join(struct.pack("<HIH", 0, place, 0) for place in (0x4000_0000 | 2 * 1024, 2048))
    pieces = struct.pack("<3I", *lengths) + places
    table = b"\x01\x02\x00xx" + b"\x02" + struct.pack("<I", len(pieces)) + pieces
    struct.pack_into("<II", main, 0x1A2, 100, len(table))
    main[1024 : 1024 + len(first)] = first
    main[2048 : 2048 + len(second)] = second
    return compound({"WordDocument": bytes(main), "1Table": bytes(100) + table})


def ppt(token: str = "5fc091e3") -> bytes:
    def record(kind: int, body: bytes, version: int = 0) -> bytes:
        return struct.pack("<HHI", version, kind, len(body)) + body

    link = record(
        4055,
        record(4026, "shown".encode("utf-16-le")) + record(4026, URL.encode("utf-16-le"), 0x10),
        0xF,
    )
    text = record(4000, "Überschrift\rZwei".encode("utf-16-le")) + record(4008, b"caf\xe9")
    master = record(1016, record(4008, b"Click to edit"), 0xF)
    user = bytes(12) + bytes.fromhex(token)
    return compound(
        {"PowerPoint Document": record(1000, link + master + text, 0xF), "Current User": user}
    )


def xls(locked: bool = False, version: int = 0x600) -> bytes:
    def record(kind: int, body: bytes) -> bytes:
        return struct.pack("<HH", kind, len(body)) + body

    def cell(row: int, body: bytes) -> bytes:
        return struct.pack("<HHH", row, 0, 0) + body

    # The second string goes on in the next record, where its characters are wider; the third has
    # runs and extras.
    strings = (
        struct.pack("<II", 3, 3)
        + struct.pack("<HB", 4, 0)
        + b"Name"
        + struct.pack("<HB", 6, 0)
        + b"par"
    )
    more = (
        b"\x01"
        + "ted".encode("utf-16-le")
        + struct.pack("<HBHI", 2, 12, 1, 2)
        + b"ok"
        + bytes(6)
        + b"rest"
    )
    moniker = bytes.fromhex("e0c9ea79f9bace118c8200aa004ba90b")
    target = (URL + "\0").encode("utf-16-le")
    number = struct.pack("<d", 1.5)
    whole = struct.pack("<I", 7 << 2 | 2)
    many = struct.pack("<HHHIHIH", 1, 2, 0, 250 << 2 | 3, 0, 0x3FF0_0000, 3)
    shared = [struct.pack("<I", place) for place in (0, 1, 2, 99)]
    rows = (
        record(0xFD, cell(0, shared[0]))
        + record(0xFD, cell(0, shared[1]))
        + record(0x203, cell(0, number))
        + record(0xFD, cell(1, shared[2]))
        + record(0xFD, cell(1, shared[3]))
        + record(0x27E, cell(1, whole))
        + record(0xBD, many)
        + record(0x06, cell(2, bytes(6) + b"\xff\xff" + bytes(6)))
        + record(0x207, struct.pack("<HB", 2, 0) + b"hi")
        + record(0x1B8, bytes(28) + moniker + struct.pack("<I", len(target)) + target)
    )
    begin = record(0x809, struct.pack("<HH", version, 5)) + (
        record(0x2F, bytes(6)) if locked else b""
    )
    return compound({"Workbook": begin + record(0xFC, strings) + record(0x3C, more) + begin + rows})
