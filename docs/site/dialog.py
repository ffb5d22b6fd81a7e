"""A name for the search, which the theme opens as a dialog without one."""

from typing import Any

SEARCH = '<div class="md-search" data-md-component="search" role="dialog"'


def on_post_page(output: str, **_: Any) -> str:
    return output.replace(SEARCH, f'{SEARCH} aria-label="Search"')
