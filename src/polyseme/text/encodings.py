r"""Detect the encoding of text, and turn any encoding into UTF-8 while it is read.

    bytes of a file  ->  text.encodings  ->  text.reading (UTF-8)

Detected without being told: UTF-8, GB18030 (with GBK and GB2312), Big5, UTF-16, Windows-1252 (with Latin-1),
and UTF-32 with a byte order mark. Each candidate decodes a sample; the share of frequent characters decides:
in Chinese about half of the characters are among the five hundred most frequent ones, in a wrong decoding
few are. Other encodings are named by the user, and a sample that fits none is not guessed at.

Invariants: UTF-8 passes unchanged, but for its byte order mark; memory is constant; lines before a damaged
one are read before the error is raised.
"""

from __future__ import annotations

import codecs
import io
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from polyseme.errors import DataError, EncodingError, UsageError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

AUTO = "auto"
SAMPLE_BYTES = 1 << 15  # looked at from the first byte that is not ASCII
_BLOCK_BYTES = 1 << 16
_MIN_CHINESE = 0.25  # share of frequent characters; 0.4 to 0.8 in modern and classical prose, 0.05 if wrong
_MIN_LATIN = 0.6
_MIN_WIDE = 0.7  # of UTF-16, where ASCII counts, too
_MAX_ERRORS = 0.005  # share of characters of a sample that cannot be decoded: a damaged file
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SUPERSETS = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "cp950",
    "ascii": "utf-8",
    "iso8859-1": "latin-1",
}
_NAMES = {
    "utf-8": "UTF-8",
    "gb18030": "GB18030",
    "cp950": "Big5",
    "big5hkscs": "Big5 (Hong Kong)",
    "utf-16-le": "UTF-16 (little-endian)",
    "utf-16-be": "UTF-16 (big-endian)",
    "cp1252": "Windows-1252 (Latin-1)",
    "latin-1": "Latin-1",
}
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\v\f\r\x1b")
_HIGH_BYTE = re.compile(rb"[\x80-\xff]")
_MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe1-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_PUNCTUATION = "　，。、；：？！“”‘’「」『』《》〈〉（）—…·"
_SIMPLIFIED = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然"
    "家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把"
    "机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果"
    "加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔"
    "更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展"
    "马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共"
    "确传师观清今切院让识候带导争运笑飞风步改收根干造言联持组每济车亲极林服快办议往元英士证近失转夫令准布始怎呢存未"
    "远叫台单影具罗字爱击流备兵连调深商算质团集百需价花党华城石级整府离况亚请技际约示复病息究线似官火断精满支视消越"
    "曰乃吾汝哉矣焉耶兮岂弗遂皆亦尽欲使曹操刘备玄德军马吕布云长贾宝玉悟空"
)
_TRADITIONAL = (
    "這個們來國說時會對於著過發後裡裏種經麼學現當沒動還進樣開實軍無與長機業將間問應戰頭體見產別話內給門東聲員處"
    "義幾條係氣題爾變總電數報結務場計資統區隊決馬書則聽卻達強難權設記類據邊張該規萬覺領確傳師觀讓識帶導爭運飛"
    "聯組濟車親極議證轉術單愛擊連調質團黨華級離況請際約復線斷滿視豈盡劉備呂雲賈寶"
    "為從關點兩並員論認陳許論羅衛遠臺歲齊歸懷勞鄉漢號遊誰誠語讀"
)
_COMMON = frozenset(_SIMPLIFIED + _TRADITIONAL + _PUNCTUATION)
_TYPOGRAPHIC = frozenset("“”‘’‚„–—…«»‹›•·°§©®™€£¥ª²³½¼¾×´¿¡\xa0\xad")
_SHORT_WORDS = frozenset("àáâãåæèéêíîïòóôõöøùúüÀÁÂÅÆÈÉÊÍÓÔÖØÚ")  # words of one letter: à, ó, é, å
_LETTER_RUNS = re.compile(r"([A-Za-z]?)([À-ÖØ-öø-ÿŠŽšžŸŒœƒ]+)(?=([A-Za-z]?))")


class DetectedEncoding(NamedTuple):
    """The encoding of a text."""

    codec: str  # as Python names it
    mark: int = 0  # bytes of the byte order mark

    @property
    def name(self) -> str:
        """As people call it: UTF-8, GB18030, Big5."""
        return name_encoding(self.codec)


def name_encoding(codec: str) -> str:
    """The name of a codec as people write it."""
    return _NAMES.get(codec, codec)


def check_encoding(encoding: str) -> str:
    """Return the codec of an encoding that a user names; "auto" stays as it is.

    GBK and GB2312 are read as GB18030, which contains them; Big5 with Microsoft's additions, such as 裏.

    Raises:
        UsageError: Python knows no such encoding of text.

    """
    if encoding.strip().lower() == AUTO:
        return AUTO
    try:
        codec = codecs.lookup(encoding.strip())
        "".encode(codec.name)  # refuses codecs of bytes, such as base64
    except (LookupError, ValueError):
        from encodings.aliases import aliases

        close = get_close_matches(encoding.lower(), [*aliases, "gb18030", "big5", "utf-8", "utf-16"], n=1)
        guess = f" Did you mean {close[0]}?" if close else ""
        raise UsageError(
            f"{encoding!r} is not an encoding. Use auto, utf-8, gb18030, big5, utf-16, latin-1 or another "
            f"name that Python knows.{guess}"
        ) from None
    return _SUPERSETS.get(codec.name, codec.name)


def detect_encoding(sample: bytes, *, at_start: bool = True) -> DetectedEncoding | None:
    """Detect the encoding of the beginning of a text.

    Args:
        sample: The first bytes, or those from the first byte that is not ASCII; a character may be cut off
            at the end.
        at_start: Whether these are the first bytes of the file, where UTF-16 and byte order marks count.

    Returns:
        The encoding, or None if none is plausible: damaged UTF-8, binary data, another encoding.

    """
    if at_start:
        for mark, codec in _BOMS:
            if sample.startswith(mark):
                return DetectedEncoding(codec, len(mark))
    has_zeros = 0 in sample
    if not has_zeros and _is_decodable(sample, "utf-8"):
        return DetectedEncoding("utf-8")
    if at_start and (wide := _detect_wide(sample)):
        return wide
    if has_zeros or not is_text(sample) or _is_damaged_utf8(sample):
        return None
    scores = {codec: _score_chinese(sample, codec) for codec in ("gb18030", "cp950")}
    if scores["cp950"] == 0:  # characters of Hong Kong, perhaps
        scores["big5hkscs"] = _score_chinese(sample, "big5hkscs")
    best = max(scores, key=lambda codec: scores[codec])
    latin = _score_latin(sample)
    if scores[best] >= _MIN_CHINESE and scores[best] >= latin / 2:
        return DetectedEncoding(best)
    return DetectedEncoding("cp1252") if latin >= _MIN_LATIN and _is_decodable(sample, "cp1252") else None


def _is_decodable(sample: bytes, codec: str) -> bool:
    """Whether a sample can be decoded, but for a character that is cut off at the end."""
    try:
        codecs.getincrementaldecoder(codec)("strict").decode(sample)
    except UnicodeDecodeError:
        return False
    return True


def _decode_sample(sample: bytes, codec: str) -> tuple[str, float]:
    """Decode a sample; return its text and the share of characters that are errors."""
    text = codecs.getincrementaldecoder(codec)("replace").decode(sample)
    wide = sum(not character.isascii() for character in text)
    return text, text.count("\ufffd") / max(wide, 1)


def _score_chinese(sample: bytes, codec: str) -> float:
    """Share of frequent Chinese characters among those that are not ASCII; 0 if much cannot be decoded."""
    text, errors = _decode_sample(sample, codec)
    if errors > _MAX_ERRORS:
        return 0.0
    characters = [character for character in text if not character.isascii()]
    if 20 * sum("\u3041" <= character <= "\u30ff" for character in characters) > len(characters):
        return 0.0  # Japanese, whose bytes are those of the same signs in GB18030
    return sum(character in _COMMON for character in characters) / max(len(characters), 1)


def _score_latin(sample: bytes) -> float:
    """Share of the characters above ASCII that stand as in a language of Western Europe.

    A letter with an accent stands alone between other letters or between words; two of them beside each
    other belong to a word with other letters (*créée*). Chinese bytes read as letters come in long runs.
    """
    text = sample.decode("cp1252", "replace")
    high = sum(character >= "\x80" for character in text)
    plausible = sum(character in _TYPOGRAPHIC for character in text)
    for before, run, after in _LETTER_RUNS.findall(text):
        is_in_word = bool(before or after)
        if (is_in_word and len(run) < 2 + run.islower()) or run in _SHORT_WORDS:
            plausible += len(run)
    return plausible / max(high, 1)


def _detect_wide(sample: bytes) -> DetectedEncoding | None:
    """UTF-16 without a byte order mark: characters are ASCII or frequent ones."""
    scores = {}
    for codec in ("utf-16-le", "utf-16-be"):
        text, errors = _decode_sample(sample, codec)
        known = sum(map(_is_known, text))
        chinese = sum("\u4e00" <= character <= "\u9fff" and character not in _COMMON for character in text)
        scores[codec] = 0.0 if errors > _MAX_ERRORS else (known + min(chinese, known)) / max(len(text), 1)
    best = max(scores, key=lambda codec: scores[codec])
    has_zeros = sample.count(0) * 10 > len(sample)
    if len(sample) >= 4 and scores[best] >= (_MIN_WIDE if has_zeros else 0.9) and _is_wide(sample, best):
        return DetectedEncoding(best)
    return None


def _is_known(character: str) -> bool:
    """Whether a character is printable ASCII or Latin-1, a line break, or frequent in Chinese."""
    return character in _COMMON or (
        character < "\u0100" and (character.isprintable() or character in "\t\r\n")
    )


def _is_wide(sample: bytes, codec: str) -> bool:
    """Whether the high bytes of UTF-16 repeat as they do in text: few values, such as 0 or 4e to 9f."""
    high = sample[1::2] if codec == "utf-16-le" else sample[::2]
    low = sample[::2] if codec == "utf-16-le" else sample[1::2]
    return len(set(high)) <= len(set(low))


def is_text(sample: bytes) -> bool:
    """Whether bytes look like text in some encoding: few control characters."""
    return len(sample) - len(sample.translate(None, _CONTROLS)) <= len(sample) // 50


def describe_binary(name: object, line: int, byte: int) -> str:
    """What to say of a file that is no text."""
    return (
        f"{name}:{line}: binary data (byte 0x{byte:02x}), not text. "
        "Leave the file out; if it is text, name its encoding: `encoding='utf-16'`."
    )


def _is_damaged_utf8(sample: bytes) -> bool:
    """Whether nearly all bytes above ASCII belong to characters of UTF-8."""
    high = len(_HIGH_BYTE.findall(sample))
    in_characters = sum(map(len, _MULTIBYTE.findall(sample)))
    return in_characters >= 0.9 * high and in_characters >= 4


class Utf8Stream(io.RawIOBase):
    """The bytes of a text as UTF-8, whatever its encoding, without a byte order mark.

    Args:
        source: The bytes.
        name: What errors call the text.
        encoding: A codec, or "auto" to detect it.

    Attributes:
        detected: The encoding, once it is known; None before, and if the text is ASCII.

    """

    def __init__(self, source: BinaryIO, name: str, encoding: str = AUTO) -> None:
        self._source, self._name = source, name
        self._decoder: codecs.IncrementalDecoder | None = None
        self._passes = False  # UTF-8 or undecidable: bytes go through
        self._is_start, self._ended = True, False
        self._line, self._plain = 1, b""
        self._problem: DataError | None = None
        self._encoding = encoding
        self.detected: DetectedEncoding | None = None

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def readinto(self, target: WriteableBuffer) -> int:
        """Fill a buffer; 0 at the end."""
        while not self._plain and self._fill():
            pass
        view = memoryview(target).cast("B")
        size = min(len(view), len(self._plain))
        view[:size], self._plain = self._plain[:size], self._plain[size:]
        return size

    def _fill(self) -> bool:
        """Read a block; False at the end of the text."""
        if self._problem is not None:
            raise self._problem
        if self._ended:
            return False
        block = self._read_block()
        self._ended = not block
        if self._passes:
            self._plain = block
        elif self._decoder is not None:
            self._decode(block)
        else:
            self._choose(block)
        return True

    def _read_block(self, size: int = _BLOCK_BYTES) -> bytes:
        read = getattr(self._source, "read1", self._source.read)  # read1 does not wait for a full block
        return bytes(read(size))

    def _choose(self, block: bytes) -> None:
        """Pass ASCII on; detect the encoding at the first block with other bytes."""
        if self._encoding == AUTO and block.isascii() and 0 not in block and not self._is_mark(block):
            self._plain, self._is_start = block, False
            self._line += block.count(b"\n")
            return
        is_wide = self._is_start and (self._is_mark(block) or 0 in block)
        start = 0 if is_wide else self._find_high_byte(block)
        while len(block) - start < SAMPLE_BYTES and (more := self._read_block(SAMPLE_BYTES)):
            block += more
        sample = block[start : start + SAMPLE_BYTES]
        if self._encoding == AUTO:
            self.detected = detect_encoding(sample, at_start=is_wide)
            if self.detected is None and self._is_start:
                self.detected = detect_encoding(block[:SAMPLE_BYTES])
        else:
            self.detected = self._find_mark(block)
        self._is_start = False
        is_utf8 = _is_decodable(sample, "utf-8")  # zeros in it are left to the readers
        if self._encoding == AUTO and self.detected is None and not (is_utf8 or is_text(sample)):
            self._refuse(block, self._find_high_byte(block))
            return
        if self.detected is None or self.detected.codec == "utf-8":
            self._passes = True
            self._plain = block[self.detected.mark if self.detected else 0 :]
            return
        self._decoder = codecs.getincrementaldecoder(self.detected.codec)("strict")
        self._decode(block[self.detected.mark :])

    def _refuse(self, block: bytes, position: int) -> None:
        """Pass the lines before binary data on; the error comes next."""
        end = block.rfind(b"\n", 0, position) + 1
        self._plain = block[:end]
        self._line += self._plain.count(b"\n")
        self._problem = DataError(describe_binary(self._name, self._line, block[position]))

    def _find_mark(self, block: bytes) -> DetectedEncoding:
        """The named encoding, and the size of its byte order mark."""
        for mark, codec in _BOMS:
            generic = codec.removesuffix("-le").removesuffix("-be")
            if self._encoding in (codec, generic) and block.startswith(mark):
                return DetectedEncoding(codec, len(mark))
        return DetectedEncoding(
            f"{self._encoding}-le" if self._encoding in ("utf-16", "utf-32") else self._encoding
        )

    @staticmethod
    def _is_mark(block: bytes) -> bool:
        return block.startswith(tuple(mark for mark, _ in _BOMS))

    @staticmethod
    def _find_high_byte(block: bytes) -> int:
        match = _HIGH_BYTE.search(block)
        return match.start() if match else 0

    def _decode(self, block: bytes) -> None:
        """Decode a block into UTF-8; a damaged one as far as possible, and the error comes next."""
        assert self._decoder is not None and self.detected is not None  # noqa: PT018, S101  # for mypy
        try:
            text = self._decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            raw = error.object
            text = raw[: error.start].decode(self.detected.codec, "replace")
            line = self._line + text.count("\n")
            column = len(text) - (text.rfind("\n") + 1) + 1
            self._problem = EncodingError(
                f"{self._name}:{line}: not {self.detected.name} (byte 0x{raw[error.start]:02x} near column "
                f"{column}). The file is damaged there, or of another encoding: name it with `encoding`."
            )
        self._line += text.count("\n")
        self._plain = text.encode("utf-8", "surrogatepass")
