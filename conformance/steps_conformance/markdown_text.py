"""Text of others in Markdown: whatever a target or backend says stays text."""


def plain(text: str) -> str:
    """Return text in which nothing is Markdown or HTML, on one line."""
    escaped = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for sign in "\\`*_[]|":
        escaped = escaped.replace(sign, f"\\{sign}")
    return escaped


def code(text: str) -> str:
    """Return text for between two backticks, which it cannot end."""
    return " ".join(text.split()).replace("`", "'").replace("|", "\\|")


def block(text: str) -> str:
    """Return text as an indented block, which no content can end."""
    return "\n".join(f"    {line}" for line in text.splitlines() or ["(no message)"])
