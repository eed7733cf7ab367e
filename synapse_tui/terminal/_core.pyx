# cython: language_level=3, nonecheck=True, wraparound=False
"""The hot path of the terminal core, compiled: see `core.py`, which chooses between it and plain Python.

It does what `Stream` and `Grid` do for what programs send in bulk: text, line breaks, SGR, cursor positions and
erasing to the end of a row. Everything else is handed to their methods, one token at a time, so that each
sequence has one place where its meaning is written. `tests/terminal/test_vt_compiled.py` compares both.
"""

import sys

from cpython.unicode cimport PyUnicode_AsUTF8String, PyUnicode_DATA, PyUnicode_FromKindAndData
from cpython.unicode cimport PyUnicode_KIND, PyUnicode_READ, PyUnicode_Substring
from libc.stdint cimport uint64_t

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(str text)
    ctypedef object (*NewFunction)(type cls, tuple arguments, void* keywords)
    ctypedef struct TypeObject "PyTypeObject":
        NewFunction tp_new

ctypedef void* Data

# The layout of a packed style, see `style.py`: the lower half has attributes, foreground and background, the
# upper half the colour of the underline and the link.
cdef uint64_t HALF = 0xFFFFFFFFFFFFFFFF
cdef uint64_t COLOR = (1 << 26) - 1
cdef uint64_t ATTRIBUTES = (1 << 11) - 1
cdef uint64_t UNDERLINE = 7 << 8
cdef int FG_SHIFT = 12
cdef int BG_SHIFT = 38
cdef uint64_t FG = COLOR << 12
cdef uint64_t BG = COLOR << 38
cdef uint64_t RGB = 1 << 24

# Bits of the class of a character, see `cells.py: make_classes`
cdef enum:
    NARROW = 1
    WIDE = 2
    EXTENDER = 4
    REGIONAL = 8
    VIRAMA = 16
    PICTOGRAPH = 32
    INDIC = 64
    UNKNOWN = 128

cdef enum:
    MOST_ITEMS = 64  # Parameters of one SGR sequence; one with more is handed to Python
    MOST_CODED = 512  # Characters that are coded at once
    MOST_QUEUED = 200  # Rows for the scrollback, which packs them in batches
    MAX_CLUSTER = 32
    FAR = 100_000

cdef Py_UCS4 ZWJ = 0x200D
cdef Py_UCS4 WIDE_TAIL = 0
cdef Py_UCS4 JOIN = 1

cdef list NO_STYLES = []

cdef bytes classes = b""
cdef const unsigned char* class_of = NULL
cdef Py_ssize_t classified = 0
cdef object code_cluster = None


def set_classes(bytes table not None, encode_cluster not None):
    """Take over the classes of all characters below `len(table)`, and what codes one cluster."""
    global classes, class_of, classified, code_cluster
    classes, class_of, classified, code_cluster = table, table, len(table), encode_cluster


cdef inline int kind_of(Py_UCS4 char) noexcept:
    if char < 0x7F:
        return NARROW
    if <Py_ssize_t>char < classified:
        return class_of[char]
    return WIDE if 0x20000 <= char < 0x3FFFE else UNKNOWN


cdef inline bint is_text(Py_UCS4 char) noexcept:
    return char >= 0x20 and (char < 0x7F or char > 0x9F)


cdef class RowState:
    """The cells of a row: see `row.Row`."""

    cdef public str text
    cdef public Py_ssize_t size
    cdef public list spans
    cdef public object last, fill
    cdef public bint joined, wide, wrapped
    cdef public list cells, styles
    cdef public long long stamp

    def __cinit__(self):
        self.text = ""
        self.spans = []
        self.last = self.fill = 0
        self.styles = NO_STYLES

    def __init__(self, fill=0, long long stamp=0):
        self.fill = fill
        self.stamp = stamp

    cpdef clear(self, fill):
        self.text = ""
        self.size = 0
        self.spans = []
        self.last = 0
        self.fill = fill
        self.joined = self.wide = False
        self.cells = None
        self.styles = NO_STYLES

    cdef int extend(self, Py_ssize_t x, Py_ssize_t end, str piece, style) except -1:
        """Append to a compact row."""
        cdef str text
        if style is not self.last and style != self.last:
            self.spans.append(x)
            self.spans.append(style)
            self.last = style
        if self.size == 0:
            self.text = piece
        else:
            text = self.text
            self.text = ""  # the only reference now, so that the string grows in place
            text += piece
            self.text = text
        self.size = end
        return 0


cdef class ScreenState:
    """What is read and written for each character: see `grid.Grid`."""

    cdef public Py_ssize_t columns, lines, x, y, top, bottom, left, right
    cdef public bint simple, side_margins, joining, report_scrolled_lines, iso_protection
    cdef public long long tick
    cdef public list rows
    cdef public str last_text
    cdef public object buffer_shown, main_buffer, modes
    cdef object lines_above  # The scrollback
    cdef list queue  # That of the scrollback
    cdef uint64_t low, high
    cdef object packed  # The style as an integer; None if it is to be made

    def __cinit__(self, *args, **more):
        self.packed = 0
        self.last_text = ""
        self.rows = []

    @property
    def scrollback(self):
        return self.lines_above

    @scrollback.setter
    def scrollback(self, value):
        self.lines_above = value
        self.queue = value.queue

    @property
    def style(self):
        if self.packed is None:
            self.packed = self.low if self.high == 0 else (<object>self.high << 64) | self.low
        return self.packed

    @style.setter
    def style(self, value):
        self.low = value & HALF
        self.high = value >> 64
        self.packed = value

    cdef inline object pen(self):
        return self.packed if self.packed is not None else self.style

    cdef inline object blank(self):
        """The style that erasing leaves."""
        return <object>(self.low & BG) if self.low & BG else 0

    cdef inline RowState row(self, Py_ssize_t y):
        return <RowState?>self.rows[y]


# Lines


cdef RowState new_row(type row_type, fill, long long stamp):
    cdef RowState row = (<TypeObject*>row_type).tp_new(row_type, (), NULL)
    row.fill = fill
    row.stamp = stamp
    return row


cdef int roll(ScreenState screen) except -1:
    cdef list rows = screen.rows
    cdef Py_ssize_t top = screen.top, bottom = screen.bottom
    cdef RowState row = screen.row(top)
    del rows[top]
    rows.insert(bottom, new_row(type(row), screen.blank(), screen.tick))
    if bottom < screen.lines - 1:
        screen.row(bottom + 1).wrapped = False
    if top:
        screen.row(top).wrapped = False
        return 0
    if screen.buffer_shown is screen.main_buffer:
        if len(screen.queue) < MOST_QUEUED:
            screen.queue.append(row)
        else:
            screen.lines_above.push(row)
    if screen.report_scrolled_lines:
        screen.report_scrolled(row)
    return 0


cdef inline int go_down(ScreenState screen) except -1:
    if screen.y == screen.bottom:
        return roll(screen)
    if screen.y < screen.lines - 1:
        screen.y += 1
        screen.row(screen.y).wrapped = False
    return 0


cdef int line_feed(ScreenState screen) except -1:
    if screen.side_margins or screen.modes.newline:
        screen.linefeed()
        return 0
    go_down(screen)
    settle(screen)
    return 0


cdef int new_line(ScreenState screen) except -1:
    if screen.side_margins:
        screen.new_line()
        return 0
    screen.x = 0
    return go_down(screen)


cdef inline void settle(ScreenState screen) noexcept:
    """Cancel a pending wrap."""
    if screen.x >= screen.columns:
        screen.x = screen.columns - 1 if screen.x == screen.columns else screen.right


cdef enum:
    MOST_SHARED = 4096
    FEW = 64
    SMALL = 256
cdef Py_ssize_t EMPTY_TEXT = sys.getsizeof("")
cdef Py_ssize_t OTHER_TEXT = sys.getsizeof("\xe9") - 2  # Text that is not ASCII, without its characters
cdef Py_ssize_t EMPTY_BYTES = sys.getsizeof(b"")


def pack_simple(list queue not None, Py_ssize_t at, dict shared not None):
    """Pack the rows from `at` on that are compact and do not continue another one.

    Returns their entries, their numbers of cells, and the memory of each entry: see `scrollback.size_of`.
    """
    cdef list entries = [], counts = [], sizes = []
    cdef Py_ssize_t memory, index
    cdef RowState row
    cdef list values
    cdef str text
    cdef bytes encoded
    cdef object kept
    for index in range(at, len(queue)):
        row = <RowState?>queue[index]
        if row.cells is not None or row.wrapped:
            break
        counts.append(row.size)
        kept = text = row.text
        if PyUnicode_IS_ASCII(text):
            memory = EMPTY_TEXT + len(text)
            if not row.spans and row.fill == 0:
                entries.append(text)
                sizes.append(memory + 20)
                continue
        else:
            memory = OTHER_TEXT + (len(text) + 1) * PyUnicode_KIND(text)
            encoded = PyUnicode_AsUTF8String(text)
            if EMPTY_BYTES + len(encoded) < memory:
                kept = encoded
                memory = EMPTY_BYTES + len(encoded)
        if len(shared) > MOST_SHARED:
            shared.clear()
        values = [shared.setdefault(value, value) for value in row.spans]
        entries.append((kept, tuple(values), shared.setdefault(row.fill, row.fill), False))
        if len(values) <= FEW:
            memory += 16 * len(values)
        else:
            memory += 8 * len(values) + 44 * len({value for value in values if value > SMALL})
        sizes.append(memory + 164)
    return entries, counts, sizes


# Text


cdef inline bint are_narrow(int kind, Data data, Py_ssize_t start, Py_ssize_t end) noexcept:
    cdef Py_ssize_t at
    for at in range(start, end):
        if not kind_of(PyUnicode_READ(kind, data, at)) & NARROW:
            return False
    return True


cdef int draw(ScreenState screen, str text, Py_ssize_t start, Py_ssize_t end) except -1:
    cdef int kind = PyUnicode_KIND(text)
    cdef Data data = PyUnicode_DATA(text)
    cdef Py_ssize_t x = screen.x, stop = x + end - start
    cdef RowState row
    if screen.simple and stop <= screen.columns:
        row = screen.row(screen.y)
        if PyUnicode_IS_ASCII(text) or are_narrow(kind, data, start, end):
            if row.cells is None:
                if x == row.size:
                    screen.last_text = PyUnicode_Substring(text, start, end)
                    row.extend(x, stop, screen.last_text, screen.pen())
                    row.stamp = screen.tick
                    screen.x = stop
                    return 0
            elif not row.wide:
                overwrite(row, x, text, start, end, screen.pen())
                screen.last_text = PyUnicode_Substring(text, end - 1, end)
                row.stamp = screen.tick
                screen.x = stop
                return 0
        elif row.cells is None and x == row.size and end - start <= MOST_CODED:
            if draw_coded(screen, row, text, start, end):
                return 0
    screen.draw(PyUnicode_Substring(text, start, end))
    return 0


cdef int overwrite(RowState row, Py_ssize_t x, str text, Py_ssize_t start, Py_ssize_t end, style) except -1:
    cdef list cells = row.cells, styles = row.styles
    cdef Py_ssize_t at
    for at in range(start, end):
        cells[x] = PyUnicode_Substring(text, at, at + 1)
        styles[x] = style
        x += 1
    return 0


cdef bint draw_coded(ScreenState screen, RowState row, str text, Py_ssize_t start, Py_ssize_t end) except -1:
    """Append text with wide characters and clusters to a compact row, if it is a common case.

    A cluster ends where the next character is none that may follow in it: `cells.py: CLUSTER`.
    """
    cdef int kind = PyUnicode_KIND(text)
    cdef Data data = PyUnicode_DATA(text)
    cdef Py_UCS4[3 * MOST_CODED] coded
    cdef Py_UCS4 char = PyUnicode_READ(kind, data, start), before
    cdef int size = 0, cells = 0, this = kind_of(char), following
    cdef Py_ssize_t at = start, stop, place
    cdef str cluster, piece
    if this & (REGIONAL | PICTOGRAPH | INDIC) and is_open(row.text) or not screen.modes.grapheme_clusters:
        return False
    while at < end:
        char = PyUnicode_READ(kind, data, at)
        this = kind_of(char)
        following = kind_of(PyUnicode_READ(kind, data, at + 1)) if at + 1 < end else 0
        if (this | following) & UNKNOWN or this & EXTENDER or size + 3 * MAX_CLUSTER > 3 * MOST_CODED:
            return False
        if this & (NARROW | WIDE) and not following & EXTENDER:
            coded[size] = char
            size += 1
            cells += 1
            if this & WIDE:
                coded[size] = WIDE_TAIL
                size += 1
                cells += 1
            at += 1
            continue
        if this & NARROW and has_accent(kind, data, at, end):
            coded[size] = char
            coded[size + 1] = JOIN
            coded[size + 2] = PyUnicode_READ(kind, data, at + 1)
            size += 3
            cells += 1
            at += 2
            continue
        stop = at + (2 if this & REGIONAL and following & REGIONAL else 1)
        place = stop
        while stop < end and stop - place < MAX_CLUSTER - 1:
            before = PyUnicode_READ(kind, data, stop - 1)
            following = kind_of(PyUnicode_READ(kind, data, stop))
            if following & UNKNOWN:
                return False
            if not (
                following & EXTENDER
                or (before == ZWJ and following & PICTOGRAPH)
                or (following & INDIC and after_virama(kind, data, at, stop))
            ):
                break
            stop += 1
        cluster = code_cluster(PyUnicode_Substring(text, at, stop))
        cells += len(cluster)
        for char in cluster:
            if char == JOIN:
                cells -= 2
            coded[size] = char
            size += 1
        at = stop
    if screen.x + cells > screen.columns:
        return False
    piece = PyUnicode_FromKindAndData(4, coded, size)
    row.extend(screen.x, screen.x + cells, piece, screen.pen())
    row.wide = True
    if size != cells:
        row.joined = True
    row.stamp = screen.tick
    screen.x += cells
    screen.last_text = PyUnicode_Substring(text, start, end)
    char = PyUnicode_READ(kind, data, end - 1)
    if char == ZWJ or kind_of(char) & (REGIONAL | VIRAMA):
        screen.joining = True
        screen.simple = False
    return True


cdef inline bint has_accent(int kind, Data data, Py_ssize_t at, Py_ssize_t end) noexcept:
    """Whether a character and one combining diacritical mark (U+0300 to U+036F) are a whole cluster."""
    if not 0x300 <= PyUnicode_READ(kind, data, at + 1) <= 0x36F:
        return False
    return at + 2 == end or not kind_of(PyUnicode_READ(kind, data, at + 2)) & (EXTENDER | UNKNOWN)


cdef bint is_open(str coded) except -1:
    """Whether a coded text ends in a character that may join the next one to its cluster."""
    cdef Py_ssize_t last = len(coded) - 1
    if last > 0 and coded[last] == WIDE_TAIL:
        last -= 1
    return last >= 0 and (coded[last] == ZWJ or kind_of(coded[last]) & (VIRAMA | REGIONAL))


cdef inline bint after_virama(int kind, Data data, Py_ssize_t start, Py_ssize_t at) noexcept:
    cdef Py_UCS4 before = PyUnicode_READ(kind, data, at - 1)
    if before == ZWJ and at - 2 >= start:
        before = PyUnicode_READ(kind, data, at - 2)
    return kind_of(before) & VIRAMA


# Renditions


cdef int render(ScreenState screen, str text, int kind, Data data, Py_ssize_t start, Py_ssize_t end) except -1:
    """SGR: see `style.py: parse`, which takes what has colons."""
    cdef int[MOST_ITEMS] values
    cdef int[MOST_ITEMS] lengths
    cdef int count = 0, value = 0, length = 0
    cdef Py_ssize_t at
    cdef Py_UCS4 char
    if start == end:
        reset_rendition(screen)
        return 0
    for at in range(start, end):
        char = PyUnicode_READ(kind, data, at)
        if char == c";":
            values[count], lengths[count] = value, length
            count += 1
            if count == MOST_ITEMS:
                return render_any(screen, text, start, end)
            value = length = 0
        elif char == c":":
            return render_any(screen, text, start, end)
        else:
            value = min(value * 10 + <int>char - 48, FAR)
            length += 1
    values[count], lengths[count] = value, length
    apply(screen, values, lengths, count + 1)
    return 0


cdef int render_any(ScreenState screen, str text, Py_ssize_t start, Py_ssize_t end) except -1:
    keep, add = screen.sgr.change(PyUnicode_Substring(text, start, end))
    screen.style = screen.pen() & keep | add
    return 0


cdef inline void reset_rendition(ScreenState screen) noexcept:
    screen.low &= ~(ATTRIBUTES | FG | BG)
    screen.high &= ~COLOR
    screen.packed = None


cdef inline uint64_t byte(int value) noexcept:
    return value if value < 255 else 255


cdef void apply(ScreenState screen, const int* values, const int* lengths, int count) noexcept:
    cdef int index = 0, code
    cdef uint64_t color
    while index < count:
        code = values[index]
        if lengths[index] == 2 and (code == 38 or code == 48 or code == 58):
            if count - index > 4 and lengths[index + 1] == 1 and values[index + 1] == 2:
                color = RGB | byte(values[index + 2]) << 16 | byte(values[index + 3]) << 8
                color = (color | byte(values[index + 4])) + 1
                index += 5
            elif count - index > 2 and lengths[index + 1] == 1 and values[index + 1] == 5:
                color = byte(values[index + 2]) + 1
                index += 3
            else:
                break
            set_color(screen, code, color)
            continue
        index += 1
        apply_one(screen, code)
    screen.packed = None


cdef inline void set_color(ScreenState screen, int code, uint64_t color) noexcept:
    if code == 38:
        screen.low = screen.low & ~FG | color << FG_SHIFT
    elif code == 48:
        screen.low = screen.low & ~BG | color << BG_SHIFT
    else:
        screen.high = screen.high & ~COLOR | color


cdef inline void apply_one(ScreenState screen, int code) noexcept:
    cdef uint64_t style = screen.low
    if code == 0:
        style &= ~(ATTRIBUTES | FG | BG)
        screen.high &= ~COLOR
    elif code <= 3:
        style |= 1 << (code - 1)
    elif code == 4:
        style = style & ~UNDERLINE | 1 << 8
    elif code == 5 or code == 6:
        style |= 1 << 3
    elif code <= 9:
        style |= 1 << (code - 3)
    elif code == 21:
        style = style & ~UNDERLINE | 2 << 8
    elif code == 22:
        style &= ~<uint64_t>3
    elif code == 23:
        style &= ~<uint64_t>(1 << 2)
    elif code == 24:
        style &= ~UNDERLINE
    elif code == 25:
        style &= ~<uint64_t>(1 << 3)
    elif 27 <= code <= 29:
        style &= ~(<uint64_t>1 << (code - 23))
    elif 30 <= code <= 37:
        style = style & ~FG | <uint64_t>(code - 29) << FG_SHIFT
    elif code == 39:
        style &= ~FG
    elif 40 <= code <= 47:
        style = style & ~BG | <uint64_t>(code - 39) << BG_SHIFT
    elif code == 49:
        style &= ~BG
    elif code == 53:
        style |= 1 << 7
    elif code == 55:
        style &= ~<uint64_t>(1 << 7)
    elif code == 59:
        screen.high &= ~COLOR
    elif 90 <= code <= 97:
        style = style & ~FG | <uint64_t>(code - 81) << FG_SHIFT
    elif 100 <= code <= 107:
        style = style & ~BG | <uint64_t>(code - 91) << BG_SHIFT
    screen.low = style


# Control sequences


cdef bint position(ScreenState screen, int kind, Data data, Py_ssize_t start, Py_ssize_t end) except -1:
    """CUP with a row and a column of the screen, outside of origin mode."""
    cdef Py_ssize_t at, line = 0, column = 0
    cdef bint second = False
    cdef Py_UCS4 char
    for at in range(start, end):
        char = PyUnicode_READ(kind, data, at)
        if char == c";" and not second:
            second = True
        elif char < c"0" or char > c"9" or end - start > 11:
            return False
        elif second:
            column = column * 10 + <int>char - 48
        else:
            line = line * 10 + <int>char - 48
    if not (0 < line <= screen.lines and 0 < column <= screen.columns) or screen.modes.origin:
        return False
    screen.y = line - 1
    screen.x = column - 1
    return True


cdef bint move_up(ScreenState screen, int kind, Data data, Py_ssize_t start, Py_ssize_t end) noexcept:
    """CUU."""
    cdef Py_ssize_t at, count = 0, limit = screen.top if screen.y >= screen.top else 0
    cdef Py_UCS4 char
    if end - start > 9:
        return False
    for at in range(start, end):
        char = PyUnicode_READ(kind, data, at)
        if char < c"0" or char > c"9":
            return False
        count = count * 10 + <int>char - 48
    screen.y = max(screen.y - max(count, 1), limit)
    settle(screen)
    return True


cdef bint erase_line(ScreenState screen, int kind, Data data, Py_ssize_t start, Py_ssize_t end) except -1:
    """EL to the end of the row, or of the whole row, where a row stays compact."""
    cdef Py_UCS4 how = c"0"
    cdef RowState row
    if end - start > 1 or screen.iso_protection:
        return False
    if end > start:
        how = PyUnicode_READ(kind, data, start)
    row = screen.row(screen.y)
    if how == c"2" or (how == c"0" and screen.x == 0):
        row.clear(screen.blank())
        if how == c"2":
            row.wrapped = False
    elif how == c"0" and row.cells is None and not row.joined and screen.x == row.size < screen.columns:
        row.fill = screen.blank()
    else:
        return False
    row.stamp = screen.tick
    if screen.y + 1 < screen.lines:
        screen.row(screen.y + 1).wrapped = False
    return True


def has_c1(str text not None):
    """Whether a text contains a C1 control, U+0080 to U+009F."""
    cdef int kind = PyUnicode_KIND(text)
    cdef Data data = PyUnicode_DATA(text)
    cdef Py_ssize_t at
    for at in range(len(text)):
        if 0x80 <= PyUnicode_READ(kind, data, at) <= 0x9F:
            return True
    return False


def scan(stream, ScreenState screen not None, str text not None, Py_ssize_t at, Py_ssize_t end, bint limited):
    """Carry out the tokens that begin in a part of a text.

    Args:
        stream: The `Stream`: its `call` runs one token of another kind.
        screen: What to draw on.
        text: Decoded output.
        at: Where to begin.
        end: Where to end; text is cut there, anything else is finished.
        limited: Whether to stop as soon as the stream's time is over.

    Returns:
        Where the first token begins that was not carried out: `end` or more, unless the time is over or
        something incomplete stands there.
    """
    cdef int kind = PyUnicode_KIND(text)
    cdef Data data = PyUnicode_DATA(text)
    cdef Py_ssize_t length = len(text), first, last, stop
    cdef dict calls = stream.calls
    cdef Py_UCS4 char
    cdef bint done
    if at < 0 or end > length:
        raise IndexError(at, end)
    while at < end:
        char = PyUnicode_READ(kind, data, at)
        if is_text(char):
            stop = at + 1
            while stop < end and is_text(PyUnicode_READ(kind, data, stop)):
                stop += 1
            draw(screen, text, at, stop)
            at = stop
            continue
        if char == c"\r" and at + 1 < length and PyUnicode_READ(kind, data, at + 1) == c"\n":
            new_line(screen)
            at += 2
            continue
        if char == c"\n":
            line_feed(screen)
            at += 1
            continue
        if char == c"\r" and screen.left == 0:
            screen.x = 0
            at += 1
            continue
        if char == 0x1B and at + 1 < length and PyUnicode_READ(kind, data, at + 1) == c"[":
            first = last = at + 2
            while last < length and c"0" <= PyUnicode_READ(kind, data, last) <= c";":
                last += 1
            if last == length:
                return at
            char = PyUnicode_READ(kind, data, last)
            done = False
            if char == c"m":
                render(screen, text, kind, data, first, last)
                done = True
            elif char == c"H":
                done = position(screen, kind, data, first, last)
            elif char == c"A":
                done = move_up(screen, kind, data, first, last)
            elif char == c"K":
                done = erase_line(screen, kind, data, first, last)
            if done:
                at = last + 1
                continue
            stop = end_of_sequence(kind, data, first, length)
            if stop == 0:
                return at
            call = calls.get(PyUnicode_Substring(text, at, stop))
            if call is not None and char != c"b":
                handler, parameters = call
                handler(*parameters)
                at = stop
                if limited and stream.late():
                    return at
                continue
        stop = stream.call(text, at, end)
        if stop <= at:  # nothing complete; or negative, as the time is over
            return at if stop >= 0 else -stop
        at = stop
    return at


cdef Py_ssize_t end_of_sequence(int kind, Data data, Py_ssize_t at, Py_ssize_t length) noexcept:
    """Return where a control sequence ends, given where its parameters begin; 0 if it is not complete."""
    if at < length and c"<" <= PyUnicode_READ(kind, data, at) <= c"?":
        at += 1
    while at < length and c"0" <= PyUnicode_READ(kind, data, at) <= c";":
        at += 1
    while at < length and c" " <= PyUnicode_READ(kind, data, at) <= c"/":
        at += 1
    return at + 1 if at < length and c"@" <= PyUnicode_READ(kind, data, at) <= c"~" else 0
