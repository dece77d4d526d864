/** The style sheet of a report's page. Series colours are told apart on white and on black, and by most colour-blind readers. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1f2328; --faint: #59636e; --line: #d8dee4; --shade: #f6f8fa;
  --good: #1a7f37; --fair: #7d5a00; --bad: #c6303a;
  --series-0: #0b6bcb; --series-1: #d1570f; --series-2: #12805c; --series-3: #b4308f;
  --series-4: #8f6a00; --series-5: #5b50d6; --series-6: #0e8a9c; --series-7: #c9303e;
  --series-8: #5d7a12; --series-9: #7b5338; --series-10: #4d5f78; --series-11: #a05fd0;
  --series-12: #e07a9a; --series-13: #2f4b9c; --series-14: #a8b400; --series-15: #6d2142;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #0f1419; --ink: #e6edf3; --faint: #9aa7b4; --line: #313a44; --shade: #171e26;
    --good: #56d06f; --fair: #e3b341; --bad: #ff7b72;
    --series-0: #58a6ff; --series-1: #f78c4c; --series-2: #3fcf9a; --series-3: #ee7fd0;
    --series-4: #dcb43c; --series-5: #a49cff; --series-6: #4fc9dc; --series-7: #ff8088;
    --series-8: #a6c95a; --series-9: #c99b7a; --series-10: #9db0cc; --series-11: #d0a1f5;
    --series-12: #ffb3c7; --series-13: #7d97e8; --series-14: #e6ec6a; --series-15: #c2708f;
  }
}
* { box-sizing: border-box; }
body {
  max-width: 76rem; margin: 0 auto; padding: 2rem 1.25rem 4rem;
  background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif;
}
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.3rem; margin: 0 0 0.5rem; }
p { max-width: 48rem; margin: 0.5rem 0; }
section { margin-top: 2.5rem; padding-top: 1.5rem; border-top: 1px solid var(--line); }
nav { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; margin-top: 1.5rem; }
a { color: var(--series-0); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.1rem 1rem; color: var(--faint); font-size: 0.875rem; }
dd { margin: 0; overflow-wrap: anywhere; }
summary { cursor: pointer; font-weight: 600; }
figure { margin: 1.25rem 0; }
figcaption, caption { font-weight: 600; text-align: left; padding-bottom: 0.4rem; }
.chart { position: relative; height: 24rem; }
.scroll { overflow-x: auto; margin: 1.25rem 0; }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.75rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { background: var(--shade); font-weight: 600; vertical-align: bottom; }
th.short { white-space: nowrap; }
td:first-child { min-width: 11rem; }
.number { text-align: right; white-space: nowrap; }
th.number:not(.short) { white-space: normal; }
.pass, .reproduced { color: var(--good); }
.within { color: var(--fair); }
.fail, .differs { color: var(--bad); }
@media print { body { max-width: none; } section { break-inside: avoid; } }
`;
