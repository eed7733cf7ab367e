"""Writing characters: at the cursor, wrapping at the right margin, wide ones and clusters."""

from __future__ import annotations

from .cells import cell_count
from .charsets import CHARSETS
from .row import Row
from .scroll import Scrolling
from .width import (
    MAX_CLUSTER,
    SEGMENTS,
    all_narrow,
    char_width,
    cluster_width,
    encode,
    encode_cluster,
    encode_wide,
    extends,
    joins_next,
    legacy_segments,
    may_extend,
)


class Drawing(Scrolling):
    """Text."""

    def draw(self, data: str) -> None:
        """Write text at the cursor.

        Args:
            data: Text without control characters; not empty.
        """
        x = self.x
        end = x + len(data)
        if end > self.columns or not (self.simple and (data.isascii() or all_narrow(data))):
            self._draw_any(data)
            return
        row = self.rows[self.y]
        cells = row.cells
        if cells is None and x == row.size:
            if self.style != row.last:
                row.spans += (x, self.style)
                row.last = self.style
            row.text += data
            row.size = end
        elif cells is None or row.wide:
            row.write(x, data, self.style, self.columns)
        elif end == x + 1:
            cells[x] = data
            row.styles[x] = self.style
        else:
            cells[x:end] = data
            row.styles[x:end] = [self.style] * (end - x)
        row.stamp = self.tick
        self.x = end
        self.last_text = data

    def _draw_any(self, data: str) -> None:
        """Write text that may need translation, insertion, margins, or cells of another width than one."""
        data = self._translated(data)
        joining, self.joining = self.joining, False
        if joining:
            self.update_simple()
        if not joining and (data.isascii() or all_narrow(data)):
            self._draw_narrow(data)
        elif self.modes.grapheme_clusters:
            self._draw_clusters(data)
        else:
            self._draw_code_points(data)

    def _translated(self, data: str) -> str:
        """Text in the character sets in use; after SS2 or SS3 the first character is of another set."""
        first, table = "", self.translation
        if self.single_shift:
            shifted = CHARSETS.get(self.charsets[self.single_shift])
            first, data = data[0].translate(shifted) if shifted else data[0], data[1:]
            self.single_shift = 0
            self.update_simple()
        return first + (data.translate(table) if table else data)

    def _draw_clusters(self, data: str) -> None:
        """Write text in which clusters are characters: at once where it fits, else one kind at a time."""
        start = 0
        while start < len(data) and self._extend(data[start]):
            start += 1
        self._note_joiner(data)
        text = encode(data[start:])
        end = self.x + cell_count(text)
        if text and end <= self.columns and not (self.side_margins or self.modes.insert):
            row = self.rows[self.y]
            row.write_coded(self.x, end, text, self.style, self.columns)
            row.stamp = self.tick
            self.x = end
            self.last_text = data
        else:
            self._draw_segments(data, start)

    def _note_joiner(self, text: str) -> None:
        """Keep whether the next character may belong to the last one of a text."""
        if joins_next(text[-1]):
            self.joining = True
            self.simple = False

    def _draw_segments(self, data: str, start: int) -> None:
        for match in SEGMENTS.finditer(data, start):
            kind, text = match.lastindex, match.group()
            if kind == 1:
                self._draw_narrow(text)
            elif kind == 2:
                self._draw_wide(text)
            elif kind == 3:
                self._draw_cluster(text)
            elif not self._extend(text):
                self._draw_wide(text)

    def _draw_code_points(self, data: str) -> None:
        """Write text without clusters (mode 2027 reset): every code point has the width of its own."""
        for match in legacy_segments().finditer(data):
            kind, text = match.lastindex, match.group()
            if kind == 1:
                self._draw_narrow(text)
            elif kind == 2 or char_width(text) == 2:
                self._draw_wide(text)
            else:
                self._extend(text)

    # One kind of text each

    def _draw_narrow(self, data: str) -> None:
        index, count = 0, len(data)
        while index < count:
            x, limit = self._room(1)
            if self.x >= self.columns:
                index = count - 1
            size = min(limit - x, count - index)
            row = self._open(x, size, limit)
            row.write(x, data[index : index + size], self.style, self.columns)
            index += size
            self._advance(x + size, limit)
        self.last_text = data

    def _draw_wide(self, data: str) -> None:
        index, count = 0, len(data)
        while index < count:
            x, limit = self._room(2)
            size = min(limit - x >> 1, count - index)
            if size <= 0:
                return
            row = self._open(x, 2 * size, limit)
            part = data[index : index + size]
            row.write_coded(x, x + 2 * size, encode_wide(part), self.style, self.columns)
            index += size
            self._advance(x + 2 * size, limit)
        self.last_text = data

    def _draw_cluster(self, cluster: str) -> None:
        width = cluster_width(cluster)
        x, limit = self._room(width)
        if width > limit - x:
            return
        row = self._open(x, width, limit)
        row.write_coded(x, x + width, encode_cluster(cluster), self.style, self.columns)
        self._advance(x + width, limit)
        self.last_text = cluster

    # Room on the row

    def _room(self, width: int) -> tuple[int, int]:
        """Where the next character of a width goes, after wrapping if need be.

        Returns:
            Its column, and the column after the last one that may be written to: less than `width` away
            where the character does not fit and autowrap is off.
        """
        x = self.column
        limit = self.right + 1 if x <= self.right else self.columns
        if (self.x >= self.columns or x + width > limit) and self.modes.autowrap:
            self._wrap()
            x = self.x
            limit = self.right + 1 if x <= self.right else self.columns
        return x, limit

    def _advance(self, x: int, limit: int) -> None:
        """Move the cursor behind what was written; at the limit a wrap is pending."""
        self.x = x if x < limit else self.columns if limit == self.columns else self.columns + 1

    def _open(self, x: int, size: int, limit: int) -> Row:
        """The row of the cursor, with room made for `size` cells in insert mode."""
        row = self.rows[self.y]
        if self.modes.insert:
            row.insert(x, size, limit, self.style, self.columns)
        row.stamp = self.tick
        return row

    def _wrap(self) -> None:
        """Go on in the next row, which then continues this one."""
        before, scrolls = self.y, self.y == self.bottom
        self.index()
        self.x = self.left
        if not self.side_margins and (scrolls or self.y != before):
            self.rows[self.y].wrapped = True

    # Clusters

    def _extend(self, char: str) -> bool:
        """Add a code point to the character before the cursor if it belongs to it.

        Returns:
            Whether it belongs to it, or to nothing because there is no character before the cursor.
        """
        if not may_extend(char):
            return False
        x = self.column if self.x >= self.columns else self.x - 1
        row = self.rows[self.y]
        text, style = row.cell(x) if x >= 0 else ("", 0)
        if text == "" and x > 0:
            x -= 1
            text, style = row.cell(x)
        if not text:
            return char_width(char) == 0
        if not extends(text, char):
            return False
        if len(text) < MAX_CLUSTER:
            self._rewrite(row, x, text + char, style)
        return True

    def _rewrite(self, row: Row, x: int, new: str, style: int) -> None:
        """Put a longer cluster in the place of a shorter one; it may become wider or narrower."""
        before = 2 if row.expand(self.columns)[x + 1 : x + 2] == [""] else 1
        width = cluster_width(new) if self.modes.grapheme_clusters else before
        limit = self.right + 1 if x <= self.right else self.columns
        row.stamp = self.tick
        if x + width > limit and self.modes.autowrap:
            row.split(x, x + before, self.columns)
            row.put(x, " " * before, [0] * before, self.columns)
            self._draw_cluster(new)
            return
        if x + width > limit:
            return
        row.split(x, x + max(width, before), self.columns)
        row.put(x, [new, ""][:width], [style] * width, self.columns)
        row.wide = True
        if width < before:
            row.put(x + width, [" "], [style], self.columns)
        if width != before:
            self._advance(x + width, limit)
        self.last_text = new
