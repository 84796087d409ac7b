"""Every local link of the book leads to a page or file of it, and to an anchor that is there: book_links.py FOLDER"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


root = Path(sys.argv[1]).resolve()
pages = {path: Page(path) for path in root.rglob("*.html")}
broken = []
for path, page in pages.items():
    for link in page.links:
        parts = urlsplit(link)
        # 404.html stands for any address, so that its links begin at the site's root.
        if parts.scheme or parts.netloc or path.name in ("404.html", "print.html"):
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if parts.path.endswith("/"):
            target = target / "index.html"
        if not target.is_file() or not target.is_relative_to(root):
            broken.append(f"{path.relative_to(root)}: {link}")
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            broken.append(f"{path.relative_to(root)}: {link} (no such anchor)")
if len(pages) < 20 or broken:
    sys.exit("\n".join(broken) or f"only {len(pages)} pages")
print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links")
