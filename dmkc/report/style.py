"""The style sheet of a report: light and dark, wide and narrow, screen and paper."""

STYLE = """:root {
  --ink: #1d2329; --soft: #57606a; --line: #d8dee4; --paper: #ffffff; --shade: #f5f7f9;
  --accent: #0072b2; --up: #0072b2; --down: #d55e00; --warn: #fff4e5; --warn-line: #d55e00;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e9ec; --soft: #a3adb8; --line: #363d46; --paper: #15191d; --shade: #1e242a;
    --accent: #6cb8e6; --up: #56b4e9; --down: #f08a4b; --warn: #33261a; --warn-line: #f08a4b;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
main { max-width: 68rem; margin: 0 auto; padding: 2.5rem 1.5rem 3rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; overflow-wrap: anywhere; }
h2 {
  font-size: 1.2rem; margin: 2.6rem 0 .9rem; padding-bottom: .3rem;
  border-bottom: 1px solid var(--line);
}
p { margin: .6rem 0; max-width: 46rem; }
.lead { font-size: 1.08rem; color: var(--soft); }
.small { font-size: .88rem; color: var(--soft); }
a { color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
ul.notes, ul.warnings {
  list-style: none; margin: 1.2rem 0 0; padding: .7rem 1rem; border-radius: 4px;
  background: var(--shade); border-left: 4px solid var(--accent);
}
ul.warnings { background: var(--warn); border-left-color: var(--warn-line); }
ul.notes li + li, ul.warnings li + li { margin-top: .35rem; }
dl.facts {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr));
  gap: .7rem 1.6rem; margin: 0;
}
dl.facts div { border-top: 1px solid var(--line); padding-top: .35rem; }
dt { font-size: .82rem; color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.gallery { columns: 2; column-gap: 1.2rem; }
.gallery > * { break-inside: avoid; margin-bottom: 1.2rem; }
.stack { display: grid; gap: 1.2rem; align-content: start; }
figure { margin: 0; }
figure > div {
  background: #ffffff; border: 1px solid var(--line); border-radius: 6px;
  padding: .7rem .7rem .5rem;
}
figure svg { display: block; width: 100%; height: auto; }
figure svg text {
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif
    !important;
}
figcaption { font-size: .88rem; line-height: 1.45; color: var(--soft); margin: .5rem .2rem 0; }
.scroll { overflow-x: auto; margin: .8rem 0 1.4rem; }
table { border-collapse: collapse; font-size: .93rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: .4rem; }
th, td { padding: .32rem 1.4rem .32rem 0; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child { text-align: left; min-width: 7rem; max-width: 24rem; overflow-wrap: break-word; }
thead th { font-weight: 600; font-size: .84rem; color: var(--soft); vertical-align: bottom; }
tbody th { font-weight: 400; }
.bar {
  display: inline-block; position: relative; width: 7rem; height: .75rem; margin-right: 1rem;
  vertical-align: middle;
  background: linear-gradient(var(--soft), var(--soft)) 50% 0 / 1px 100% no-repeat;
}
.bar i { position: absolute; top: 0; bottom: 0; }
.bar i.up { background: var(--up); }
.bar i.down { background: var(--down); }
pre {
  overflow-x: auto; margin: .8rem 0; padding: .9rem 1rem; border-radius: 6px;
  background: var(--shade); border: 1px solid var(--line); font-size: .88rem; line-height: 1.5;
}
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
footer { margin-top: 3rem; font-size: .84rem; color: var(--soft); }
@media (max-width: 44rem) {
  main { padding: 1.4rem 1rem 2rem; }
  h1 { font-size: 1.5rem; }
  .gallery { columns: 1; }
  dl.facts { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .6rem 1rem; }
  table { font-size: .84rem; }
  th, td { padding-right: .6rem; }
  th:first-child { min-width: 5.5rem; }
  .bar { display: none; }
}
@media print {
  :root {
    --ink: #000000; --soft: #444444; --line: #cccccc; --paper: #ffffff; --shade: #f5f5f5;
    --up: #0072b2; --down: #d55e00; --warn: #fff4e5;
  }
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  h2 { break-after: avoid; margin-top: 1.4rem; }
  figure, tr, pre, dl.facts div { break-inside: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}"""
