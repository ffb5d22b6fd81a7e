"""The marks as SVG shapes around (0, 0), and the colours of everything.

Colours are Okabe and Ito's, which people with any colour vision can tell apart; shapes differ as
well, so that a print in grey still reads. Rules name colours outright and not by CSS variables,
which the programs that put figures into papers do not know.
"""

from collections.abc import Iterable, Mapping, Sequence

_OF_LOG: Mapping[str, str] = {
    "append": '<path class="line" d="M-4 0H4M0-4V4"/>',
    "entry": '<path d="M-5-3H5V3H-5Z"/>',
    "stored": '<path class="line" d="M-4-4H4M-4 0H4M-4 4H4"/>',
    "commit": '<path class="line" d="M-5 0L-1.5 4L5-4.5"/>',
    "truncate": '<path class="line" d="M-5 0H5M-3 4L3-4"/>',
    "opening": '<path class="hollow" d="M-5 5V-5H5V5"/>',
    "caught": '<path class="line" d="M-5-4L-1 0L-5 4M1-4L5 0L1 4"/>',
    "snapshot": '<rect class="hollow" x="-5" y="-4" width="10" height="8"/><circle r="1.8"/>',
    "restore": '<rect class="hollow" x="-5" y="-4" width="10" height="8"/>'
    '<path class="line" d="M0-2V2"/>',
    "invoke": '<path class="line" d="M3-5H-2V5H3"/>',
    "reply": '<path class="line" d="M-3-5H2V5H-3"/>',
}
SHAPES: Mapping[str, str] = {
    "submit": '<path class="line" d="M-4-3L0 3L4-3"/>',
    "originate": '<path d="M0-6L6 0L0 6L-6 0Z"/>',
    "send": '<circle r="2.6"/>',
    "arrive": '<circle r="2.6"/>',
    "receive": '<circle class="hollow" r="3.4"/>',
    "tentative": '<rect class="hollow" x="-4" y="-4" width="8" height="8"/>',
    "order": '<rect x="-4.5" y="-4.5" width="9" height="9"/>',
    "confirm": '<rect class="hollow" x="-5.5" y="-5.5" width="11" height="11" rx="2"/>'
    '<path class="line" d="M-3 0L-1 2.6L3.2-2.6"/>',
    "deliver": '<circle r="5.6"/>',
    "stable": '<circle class="hollow" r="5"/><circle r="2"/>',
    "stable2": '<circle class="hollow" r="6"/><circle class="hollow" r="3"/><circle r="1"/>',
    "withdraw": '<circle class="hollow" r="5"/><path class="line" d="M-3.5 3.5L3.5-3.5"/>',
    "token": '<path class="line" d="M-6 0H6"/>',
    "expire": '<path class="hollow" d="M-4-5H4L-4 5H4Z"/>',
    "suspect": '<path class="hollow" d="M0-6L6 5H-6Z"/><path class="line" d="M0-2.5V1.5M0 3V3.4"/>',
    "drop": '<path class="line" d="M-3.5-3.5L3.5 3.5M-3.5 3.5L3.5-3.5"/>',
    "lost": '<path class="line" d="M-4-4L4 4M-4 4L4-4"/>',
    "crash": '<path class="line" d="M-6.5-6.5L6.5 6.5M-6.5 6.5L6.5-6.5"/>',
    "recover": '<path d="M0-6L6 5H-6Z"/>',
    "install": '<path class="line" d="M-8 0H8"/>',
    "gather": '<path class="line" d="M-7-4L-3 0L-7 4M7-4L3 0L7 4"/>',
    "freeze": '<path class="line" d="M-5-3H5M-5 3H5"/>',
    "other": '<rect class="hollow" x="-3" y="-3" width="6" height="6"/>',
    **_OF_LOG,
}

VIEW_COLOURS = 6
"""The number of colours of views; the next view has the first colour again."""

_LIGHT = {
    "ground": "#ffffff",
    "ink": "#1f2328",
    "quiet": "#6a737d",
    "faint": "#d5d9de",
    "grid": "#eceef1",
    "blue": "#0072b2",
    "green": "#009e73",
    "orange": "#c77f00",
    "token": "#e69f00",
    "red": "#d55e00",
    "purple": "#a8508a",
    "halo": "#f0e442",
}
_LIGHT_VIEWS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#d9c900", "#0072b2")
_DARK = {
    "ground": "#14171a",
    "ink": "#e6e8ea",
    "quiet": "#9aa4ae",
    "faint": "#363c43",
    "grid": "#23282d",
    "blue": "#56b4e9",
    "green": "#2fc79b",
    "orange": "#f0b13a",
    "token": "#e69f00",
    "red": "#ff8640",
    "purple": "#de9bc4",
    "halo": "#8a8118",
}
_DARK_VIEWS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#4f9fd0")

_FONT = 'font-family:"Helvetica Neue",Helvetica,Arial,"Liberation Sans",sans-serif'

_COLOUR_OF = {
    "submit": "quiet",
    "originate": "green",
    "send": "quiet",
    "arrive": "quiet",
    "receive": "quiet",
    "tentative": "orange",
    "order": "orange",
    "confirm": "orange",
    "deliver": "blue",
    "stable": "purple",
    "stable2": "purple",
    "withdraw": "red",
    "token": "token",
    "expire": "quiet",
    "suspect": "red",
    "drop": "red",
    "lost": "red",
    "crash": "red",
    "recover": "green",
    "install": "ink",
    "gather": "quiet",
    "freeze": "quiet",
    "other": "quiet",
}
_COLOUR_OF_LOG = {
    "append": "green",
    "entry": "orange",
    "stored": "purple",
    "commit": "blue",
    "truncate": "red",
    "opening": "ink",
    "caught": "green",
    "snapshot": "purple",
    "restore": "green",
    "invoke": "quiet",
    "reply": "quiet",
}

_SHAPE = f"""
text{{{_FONT};font-size:11px}}
.title{{font-size:17px;font-weight:bold}}
.subtitle,.note{{font-size:12px}}
.reason{{font-size:13px;font-weight:bold}}
.note{{font-style:italic}}
.name{{font-size:13px;font-weight:bold;text-anchor:middle}}
.tick{{font-size:10px;text-anchor:end}}
.legend{{font-size:11px}}
.l{{paint-order:stroke;stroke-width:3px;stroke-linejoin:round}}
.l.end{{text-anchor:end}}
.l.deliver,.l.install,.l.crash,.l.recover,.l.originate{{font-weight:bold}}
.life{{stroke-width:1.5px}}
.down{{stroke-width:1.5px;stroke-dasharray:1 5}}
.axis,.grid{{stroke-width:1px}}
.rule path{{stroke-width:1.5px;fill:none}}
.rule.fault path{{stroke-dasharray:7 4}}
.rule.pause path,.rule.cut path{{stroke-width:1px;stroke-dasharray:2 4}}
.rule text{{text-anchor:middle;font-weight:bold}}
.rule text{{paint-order:stroke;stroke-width:6px;stroke-linejoin:round}}
.rule.pause text,.rule.cut text{{font-weight:normal;font-style:italic}}
.m{{stroke-width:1px}}
.m .hollow{{stroke-width:1.7px}}
.m .line{{fill:none;stroke-width:2px;stroke-linecap:round;stroke-linejoin:round}}
.m.crash .line{{stroke-width:3.2px}}
.m.token .line{{stroke-width:2.4px}}
.f path{{fill:none;stroke-width:1.2px}}
.f .hit{{stroke:#000;stroke-opacity:0;stroke-width:9px}}
.f .head{{stroke:none}}
.f.copy .way{{stroke-dasharray:6 3}}
.f.implied .way{{stroke-dasharray:1.5 3}}
.f.open .way{{stroke-dasharray:3 2.5}}
.p:hover .way{{stroke-width:2.4px}}
.band{{stroke:none}}
.hold{{stroke-width:1.6px}}
.halo{{stroke-width:2px}}
.faded{{opacity:.36}}
"""


def style(shapes: Iterable[str] = ()) -> str:
    """The style sheet of a diagram in which these shapes occur; those of the log have rules only
    there. Its rules apply to nothing else on a page that contains the diagram."""
    occur = frozenset(shapes)
    colours = _COLOUR_OF | {s: name for s, name in _COLOUR_OF_LOG.items() if s in occur}
    shape = _scoped(_SHAPE.strip().splitlines())
    light = _scoped(_rules(_LIGHT, _LIGHT_VIEWS, colours, opacity=0.42))
    dark = _scoped(_rules(_DARK, _DARK_VIEWS, colours, opacity=0.5))
    return f"\n{shape}\n{light}\n@media (prefers-color-scheme:dark){{\n{dark}\n}}\n"


def _scoped(rules: Iterable[str]) -> str:
    lines: list[str] = []
    for rule in rules:
        selectors, _, body = rule.partition("{")
        within = ",".join(f".roundelay {selector}" for selector in selectors.split(","))
        lines.append(f"{within}{{{body}")
    return "\n".join(lines)


def _rules(
    c: Mapping[str, str], views: Sequence[str], colours: Mapping[str, str], *, opacity: float
) -> list[str]:
    rules = [
        f".ground{{fill:{c['ground']}}}",
        f"text{{fill:{c['ink']}}}",
        f".subtitle,.note,.tick,.legend,.l.receive,.l.send,.l.submit,.l.drop{{fill:{c['quiet']}}}",
        f".reason,.rule.fault text{{fill:{c['red']}}}",
        f".rule.pause text,.rule.cut text{{fill:{c['quiet']}}}",
        f".l{{stroke:{c['ground']}}}",
        f".life,.down{{stroke:{c['quiet']}}}",
        f".axis,.rule path{{stroke:{c['faint']}}}",
        f".grid{{stroke:{c['grid']}}}",
        f".rule.fault path{{stroke:{c['red']}}}",
        f".rule.end path{{stroke:{c['quiet']}}}",
        f".rule.pause path,.rule.cut path{{stroke:{c['quiet']}}}",
        f".rule text{{stroke:{c['ground']}}}",
        f".m{{stroke:{c['ground']}}}",
        f".m .hollow{{fill:{c['ground']}}}",
        f".f .way{{stroke:{c['quiet']}}}",
        f".f .head{{fill:{c['quiet']}}}",
        f".f.lost .way,.f.refused .way{{stroke:{c['red']}}}",
        f".f.refused .head{{fill:{c['red']}}}",
        f".p:hover .way{{stroke:{c['ink']}}}",
        f".hold{{fill:{c['ground']};stroke:{c['token']}}}",
        f".halo{{fill:{c['halo']};stroke:{c['red']}}}",
    ]
    for shape, name in colours.items():
        rules.append(f".m.{shape}{{fill:{c[name]}}}")
        rules.append(f".m.{shape} .hollow,.m.{shape} .line{{stroke:{c[name]}}}")
    for number, colour in enumerate(views):
        rules.append(f".v{number}{{fill:{colour};fill-opacity:{opacity}}}")
        rules.append(f".h{number}{{stroke:{colour};stroke-width:3px}}")
        rules.append(f".e{number}{{fill:{colour}}}")
    return rules
