#pragma once
// The style of a report: light or dark as the reader's system, narrow or wide, and on paper.
#include <string_view>

namespace kedge::cli {

inline constexpr std::string_view kReportStyle = R"(
:root { color-scheme: light dark; --paper: #ffffff; --ground: #f5f6f8; --ink: #1d2430; --faint: #5d6776; --grid: #e4e7ec; --edge: #d8dce3;
  --good: #15803d; --bad: #b91c1c; --unsure: #a16207; --link: #1d4ed8;
  --c0: #2563c9; --c1: #d9720a; --c2: #158a4c; --c3: #b4233c; --c4: #7c3aed; --c5: #0e8397; --c6: #8a6a12; --c7: #be185d; }
@media screen and (prefers-color-scheme: dark) { :root { --paper: #161a21; --ground: #0e1116; --ink: #e3e7ee; --faint: #98a3b3; --grid: #262c36;
  --edge: #303744; --good: #4ade80; --bad: #f87171; --unsure: #eab308; --link: #8ab4ff;
  --c0: #6ea8ff; --c1: #ffab5e; --c2: #4cd08a; --c3: #ff7b8f; --c4: #b99bff; --c5: #45cfe0; --c6: #d6b656; --c7: #ff8ac2; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
header, main, footer { max-width: 1180px; margin: 0 auto; padding: 0 1.2rem; }
header { padding-top: 1.6rem; }
h1 { font-size: 1.6rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 0 0 .6rem; }
h3 { font-size: 1rem; margin: 1.1rem 0 .4rem; }
h3:first-of-type { margin-top: 0; }
h4 { font-size: .82rem; margin: 0 0 .3rem; color: var(--faint); font-weight: 600; }
a { color: var(--link); }
section { background: var(--paper); border: 1px solid var(--edge); border-radius: 8px; padding: 1rem 1.2rem; margin: 1rem 0; }
.verdict { margin: 0 0 .8rem; padding: .5rem .9rem; border-left: 4px solid var(--unsure); background: var(--ground); border-radius: 0 6px 6px 0; }
.verdict.good { border-color: var(--good); } .verdict.bad { border-color: var(--bad); }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1.2rem; margin: 0; font-size: .9rem; }
.facts dt { color: var(--faint); } .facts dd { margin: 0; overflow-wrap: anywhere; }
.mark { display: inline-block; width: .8em; height: .8em; border-radius: 2px; background: var(--c); margin-right: .45em; }
ul, p, .verdict { overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; }
th, td { padding: .22rem .8rem .22rem 0; text-align: left; border-bottom: 1px solid var(--grid); vertical-align: top; }
th { color: var(--faint); font-weight: 600; white-space: nowrap; }
td.n { font-variant-numeric: tabular-nums; white-space: nowrap; }
td.good { color: var(--good); } td.bad { color: var(--bad); } .faint, .note { color: var(--faint); }
.note { font-size: .82rem; margin: .5rem 0; }
code, pre, td.code { font: .82rem/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
pre { background: var(--ground); padding: .7rem .9rem; border-radius: 6px; overflow-x: auto; margin: .4rem 0; }
pre.command { white-space: pre-wrap; }
ul { margin: .2rem 0; padding-left: 1.2rem; }
details { margin: .6rem 0 0; } summary { cursor: pointer; color: var(--link); font-size: .9rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 440px), 1fr)); gap: 1.2rem 1.8rem; }
details .charts { margin-top: .8rem; }
figure { margin: 0; min-width: 0; }
figcaption { font-weight: 600; font-size: .92rem; } figcaption small { color: var(--faint); font-weight: 400; }
.pieces { margin: 0 0 .25rem; font-size: .82rem; color: var(--faint); display: flex; flex-wrap: wrap; gap: 0 1.1em; }
.pieces span:first-child { color: var(--ink); font-weight: 600; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); gap: 1rem 1.4rem; }
.answer, .pair { border-top: 1px solid var(--grid); padding: .55rem 0 .7rem; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 320px), 1fr)); gap: .4rem 1.4rem; margin-top: .4rem; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .88rem; line-height: 1.45; unicode-bidi: isolate; }
.text.prompt { color: var(--faint); font-style: italic; }
footer { color: var(--faint); font-size: .82rem; padding-bottom: 2rem; }
@media print { body { background: none; font-size: 11pt; } section { border: 0; padding: 0; margin: 0 0 1.2rem; }
  figure, .answer, .pair, tr { break-inside: avoid; } h2, h3, h4 { break-after: avoid; } a { color: inherit; text-decoration: none; } }
)";

}  // namespace kedge::cli
