"""What a page owes everybody: names, landmarks, contrast, a visible focus, room at every width. Findings are sentences."""

from __future__ import annotations

import importlib.util
import json
import pathlib

from webdriver import Browser

# Every visible text against what lies behind it, by the formula of WCAG 2; every border of a field against its surroundings.
CONTRAST = """
const parse = (c) => { const m = c.match(/[\\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
const channel = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
const ratio = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
function behind(element) {
  const layers = [];
  for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
}
const found = [];
let texts = 0;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node; (node = walker.nextNode());) {
  const element = node.parentElement;
  if (!node.data.trim() || ['SCRIPT', 'STYLE'].includes(element.tagName) || !element.checkVisibility({ checkOpacity: true })) continue;
  const style = getComputedStyle(element), size = parseFloat(style.fontSize), back = behind(element);
  if (element.closest('.unseen') || element.closest('svg')) continue;
  const need = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
  const got = ratio(over(parse(style.color), back), back);
  ++texts;
  if (got < need) found.push(`${got.toFixed(2)} < ${need}: "${node.data.trim().slice(0, 40)}" ${style.color} on ${back.slice(0, 3)}`);
}
for (const field of document.querySelectorAll('input:not([type=checkbox]), textarea, button')) {
  const style = getComputedStyle(field), back = behind(field.parentElement);
  if (!field.checkVisibility()) continue;
  if (field.placeholder) {
    const color = getComputedStyle(field, '::placeholder').color, got = ratio(over(parse(color), behind(field)), behind(field));
    if (got < 4.5) found.push(`${got.toFixed(2)} < 4.5: placeholder of ${field.id}`);
  }
  if (parseFloat(style.borderTopWidth) === 0) continue;
  const got = ratio(over(parse(style.borderTopColor), back), back);
  if (got < 3) found.push(`${got.toFixed(2)} < 3: border of ${field.id}`);
}
return { found: [...new Set(found)], texts };
"""

# Where something of the page lies outside the viewport to the right or left.
OVERFLOW = """
const wide = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth <= wide) return [];
return [...document.querySelectorAll('body *')].filter((e) => {
  const box = e.getBoundingClientRect();
  return box.width > 1 && (box.right > wide + 1) && getComputedStyle(e).position !== 'absolute';
}).slice(0, 5).map((e) => e.tagName + '#' + e.id + '.' + e.className + ' reaches ' + Math.round(e.getBoundingClientRect().right) + ' of ' + wide);
"""

FOCUS = """
const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
return { id: e.id || e.tagName.toLowerCase() + '.' + e.className, outline: style.outlineStyle === 'none' ? 0 : parseFloat(style.outlineWidth),
  inside: box.top >= -1 && box.bottom <= innerHeight + 1 && box.width > 0,
  covered: !e.contains(document.elementFromPoint(box.left + box.width / 2, Math.min(box.top + box.height / 2, innerHeight - 2))) };
"""

# WCAG 1.4.12: nothing may be lost when a reader spreads the text.
SPREAD = """
const sheet = new CSSStyleSheet();
sheet.replaceSync('* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important; } p { margin-bottom: 2em !important; }');
document.adoptedStyleSheets = [sheet];
"""


def contrast(browser: Browser) -> list[str]:
    result = browser.run(CONTRAST)
    if result["texts"] < 5:
        return [f"only {result['texts']} texts were found"]
    return result["found"]


def overflow(browser: Browser) -> list[str]:
    return browser.run(OVERFLOW)


def axe_source() -> str | None:
    """axe-core, which the package axe-core-python carries; None where it is not installed."""
    spec = importlib.util.find_spec("axe_core_python")
    if not spec or not spec.origin:
        return None
    return (pathlib.Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")


def axe(browser: Browser, source: str) -> list[str]:
    """Violations of WCAG 2 A and AA and of best practice, as axe-core sees them."""
    browser.run(source + "; window.axe = axe;")
    result = browser.run_async("const done = arguments[0]; axe.run(document).then((r) => done(r), (e) => done(String(e)));")
    if isinstance(result, str):
        return [f"axe failed: {result}"]
    return [f"{v['id']}: {v['help']}: {json.dumps([n['target'] for n in v['nodes']])[:300]}" for v in result["violations"]]


def unnamed(browser: Browser) -> list[str]:
    """Controls without a name in the accessibility tree."""
    roles = {"button", "textbox", "spinbutton", "checkbox", "link", "progressbar", "combobox", "DisclosureTriangle", "searchbox", "img"}
    return [role for role, name in browser.accessible() if role in roles and not name.strip()]
