#!/usr/bin/env python3
"""A picture of a terminal: ANSI text on stdin, SVG on stdout. terminal_svg.py COMMAND [LINES]

Knows bold, dim and the eight colours; headings (`# ...`) are folded as podgraft folds them on a terminal.
"""
import html
import re
import sys
import textwrap

NBSP = "\u00a0"
COLUMNS, CELL, LINE, PAD = 100, 8.43, 19, 16
COLOURS = {31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#76e3ea", 2: "#8b949e"}


def pieces(line):
    """Text with its style: a set of ANSI codes."""
    style = set()
    for code, text in re.findall(r"\x1b\[([0-9;]*)m|([^\x1b]+)", line):
        if text:
            yield text, frozenset(style)
        elif code in ("", "0"):
            style = set()
        else:
            style |= {int(number) for number in code.split(";")}


def folded(line):
    plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
    if len(plain) <= COLUMNS:
        return [line]
    if plain.startswith("# "):
        return [f"\x1b[1m{part}\x1b[0m" for part in textwrap.wrap(plain, COLUMNS, subsequent_indent="#   ", break_on_hyphens=False)]
    return [line[: COLUMNS + len(line) - len(plain) - 1] + "…\x1b[0m"]


def row(number, line):
    spans, x = [], 0
    for text, style in pieces(line):
        colour = next((COLOURS[code] for code in sorted(style) if code in COLOURS), "#e6edf3")
        weight = ' font-weight="bold"' if 1 in style else ""
        spans.append(f'<tspan x="{PAD + x * CELL:.1f}" fill="{colour}"{weight}>{html.escape(text).replace(" ", NBSP)}</tspan>')
        x += len(text)
    return f'<text y="{PAD + 30 + number * LINE}">{"".join(spans)}</text>'


def main():
    command, most = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    lines = [f"\x1b[2m$\x1b[0m {command}"]
    for line in sys.stdin.read().splitlines():
        lines += folded(line)
    if len(lines) > most:
        lines = lines[:most] + ["\x1b[2m[...]\x1b[0m"]
    width, height = round(2 * PAD + COLUMNS * CELL), PAD * 2 + 26 + LINE * len(lines)
    dots = "".join(
        f'<circle cx="{PAD + 6 + 20 * at}" cy="16" r="6" fill="{colour}"/>'
        for at, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    rows = "\n".join(row(number, line) for number, line in enumerate(lines))
    print(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14">'
        f'\n<rect width="100%" height="100%" rx="8" fill="#0d1117"/>{dots}\n{rows}\n</svg>'
    )


main()
