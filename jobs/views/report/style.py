"""The page's style sheet. Nothing is fetched: fonts are those of the reader's system."""

_CURVES = (
    *("#2f6fb5", "#d9730d", "#2e8555", "#9c4dcc", "#c0392b", "#0c8599", "#a67c00", "#667080"),
    *("#6ea8e5", "#f0a050", "#5cba85", "#c58be8", "#ee7a6d", "#4cc2d4", "#dcb53c", "#a0abbb"),
)
"""Of light pages, then of dark ones."""
_LIGHT = (
    "--ink: #1b2430; --soft: #5b6675; --line: #dde2e9; --faint: #eef1f5; --back: #fff; --card: #f6f8fa; --on: #fff; "
    "--wait: #c5ccd6; --start: #8db9e2; --run: #2f6fb5; --good: #2e8555; --bad: #c0392b; --lost: #b45309; "
    "--over: #66727f; "
)
_DARK = (
    "--ink: #e4e8ee; --soft: #9aa6b6; --line: #323b48; --faint: #222a35; --back: #12171e; --card: #1a212b; "
    "--on: #10151c; "
    "--wait: #56616f; --start: #5b87b3; --run: #6ea8e5; --good: #5cba85; --bad: #ee7a6d; --lost: #f0a050; "
    "--over: #8b97a6; "
)


def _colours(first: int) -> str:
    return " ".join(f"--c{place}: {_CURVES[first + place]};" for place in range(8))


STYLE = (
    f"""
:root {{ color-scheme: light dark; {_LIGHT}{_colours(0)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_DARK}{_colours(8)} }} }}
"""
    + """
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); max-width: 66rem;
  margin: 0 auto; padding: 2rem 1.25rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0; } h2 { font-size: 1.15rem; margin: 0 0 .75rem; }
h3 { font-size: .9rem; margin: 0; }
header > p { margin: .15rem 0 0; color: var(--soft); font: .85rem ui-monospace, monospace; }
section { margin-top: 2rem; padding-top: 1.25rem; border-top: 1px solid var(--line); }
p { margin: .5rem 0; } ul { margin: .5rem 0; padding-left: 1.2rem; }
code { font: .92em ui-monospace, monospace; background: var(--card); border-radius: 3px; padding: .1em .3em; }
.phase { font-size: .75rem; font-weight: 600; letter-spacing: .03em; padding: .25em .7em; border-radius: 1em;
  vertical-align: .25em; background: var(--wait); color: var(--ink); }
.phase.running { background: var(--run); color: var(--on); } .phase.failed { background: var(--bad); color: var(--on); }
.phase.succeeded { background: var(--good); color: var(--on); }
dl { margin: 1rem 0 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr));
  gap: .15rem 2rem; }
dl > div { display: grid; grid-template-columns: 8rem minmax(0, 1fr); gap: .75rem; }
dt { color: var(--soft); } dd { margin: 0; font-variant-numeric: tabular-nums; }
section > dl { grid-template-columns: minmax(0, 1fr); margin: 0; }
section > dl > div { grid-template-columns: 9.5rem minmax(0, 1fr); } section > h3 { margin-top: 1rem; }
dl.tiles { grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem; margin: 1.25rem 0; }
.tiles > div { display: block; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .6rem .9rem; }
.tiles dt { font-size: .8rem; } .tiles dd { font-size: 1.25rem; font-weight: 600; }
.tiles small { font-size: .8rem; font-weight: 400; color: var(--lost); margin-left: .6em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; white-space: nowrap; padding: .35rem 1.1rem .35rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { color: var(--soft); font-weight: 600; } th.n, td.n { text-align: right; width: 1%; }
th.long, td.long { padding-right: 0; } td.long { white-space: normal; min-width: 14rem; }
figure { margin: 0 0 1.25rem; } figcaption { margin-bottom: .4rem; }
figcaption p { margin: 0; color: var(--soft); font-size: .85rem; }
figcaption, .key { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; align-items: baseline; }
.key span { display: inline-flex; align-items: center; gap: .4em; } .key b { color: var(--ink); font-weight: 600;
  font-variant-numeric: tabular-nums; }
.key i { width: .75em; height: .75em; border-radius: 2px; }
.note, footer { color: var(--soft); font-size: .85rem; } footer { margin-top: 2.5rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.25rem 2rem; }
.charts > figure:last-child:nth-child(odd) { grid-column: 1 / -1; }
.charts figure, section > :last-child { margin-bottom: 0; }
.plot { display: grid; grid-template-columns: 7.5rem minmax(0, 1fr); gap: 0 .6rem; }
.charts .plot { grid-template-columns: 3rem minmax(0, 1fr); }
svg { display: block; width: 100%; overflow: visible; } svg:not([height]) { height: 11rem; }
svg.below:not([height]) { height: 1.6rem; } svg.stretched:not([height]) { width: 100%; height: 100%; overflow: hidden; }
svg text { font-size: 12px; fill: var(--soft); font-variant-numeric: tabular-nums; }
.unit { font-size: 12px; line-height: 24px; color: var(--soft); text-align: right; }
line { stroke: var(--line); shape-rendering: crispEdges; } line.tick { stroke: var(--faint); }
line.lost { stroke: var(--lost); stroke-dasharray: 4 3; }
.curve { fill: none; stroke-width: 1.75; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.saved { stroke: var(--ink); stroke-width: 1.5; } i.saved { background: var(--ink); width: 2px; height: 1em; }
svg text.on { fill: var(--on); font-weight: 600; } svg text.on.wait { fill: var(--ink); }
"""
    + "".join(
        f".{kind} {{ fill: var(--{kind}); }} i.{kind} {{ background: var(--{kind}); }}\n"
        for kind in ("wait", "start", "run", "good", "bad", "lost", "over")
    )
    + "".join(
        f".curve.c{place} {{ stroke: var(--c{place}); }} .dot.c{place} {{ fill: var(--c{place}); }} "
        f"i.c{place} {{ background: var(--c{place}); }}\n"
        for place in range(8)
    )
)
