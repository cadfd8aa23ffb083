// A list of up to millions of rows, of which only those in sight exist.
import { html, useState, useEffect, useRef } from "./vendor/preact.js";

const rowHeight = 30; // pixels, as in style.css
const highest = 30e6; // pixels that a browser can make an element high
let takesFocus = false; // the next list, since its user has come by the keyboard
const page = 200; // rows that are asked for at a time

// List shows count rows. load(from, signal) resolves to the rows of a page; row(item) draws one; version tells when the
// rows have changed; open(item) and up() are what Enter and Backspace do.
export function List({ label, count, version, load, row, open, up }) {
  const box = useRef();
  const pages = useRef(new Map());
  const [, draw] = useState();
  const [top, setTop] = useState(0);
  const [active, setActive] = useState(0);
  const [height, setHeight] = useState(600);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setHeight(entry.contentRect.height));
    observer.observe(box.current);
    if (takesFocus) box.current.focus();
    takesFocus = false;
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    pages.current = new Map();
    draw({});
  }, [version]);

  const total = Math.min(count * rowHeight, highest);
  const seen = Math.ceil(height / rowHeight) + 1;
  // Beyond the highest element, a pixel of the scroll bar stands for more than a row's share.
  const scaled = count * rowHeight > highest;
  const first = Math.max(
    0,
    Math.min(count - 1, Math.floor(scaled ? (top / (total - height)) * (count - seen + 2) : top / rowHeight)),
  );
  const offset = scaled ? Math.min(top, total - seen * rowHeight) : first * rowHeight;

  useEffect(() => {
    const abort = new AbortController();
    const into = pages.current,
      pending = new Set();
    for (const p of new Set([Math.floor(first / page), Math.floor(Math.min(count - 1, first + seen) / page)])) {
      if (count === 0 || into.has(p)) continue;
      into.set(p, []);
      pending.add(p);
      load(p * page, abort.signal).then(
        (rows) => (pending.delete(p), into.set(p, rows), draw({})),
        () => into.delete(p),
      );
    }
    return () => {
      abort.abort();
      for (const p of pending) into.delete(p);
    };
  }, [Math.floor(first / page), Math.floor((first + seen) / page), version, count]);

  const item = (i) => pages.current.get(Math.floor(i / page))?.[i % page];
  const show = (i) => {
    i = Math.max(0, Math.min(count - 1, i));
    setActive(i);
    const at = scaled ? (i / (count - seen + 2)) * (total - height) : i * rowHeight;
    const b = box.current;
    if (scaled || at < b.scrollTop) b.scrollTop = at;
    else if (at + rowHeight > b.scrollTop + b.clientHeight) b.scrollTop = at + rowHeight - b.clientHeight;
  };
  const key = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: seen - 2, PageUp: 2 - seen, Home: -count, End: count }[
      event.key
    ];
    const it = item(active);
    const leave = { Enter: it && (() => open(it)), Backspace: up, ArrowLeft: up }[event.key];
    if (step) show(active + step);
    else if (leave) {
      takesFocus = true;
      leave();
    } else return;
    event.preventDefault();
  };
  const rows = [];
  for (let i = first; i < Math.min(count, first + seen); i++) {
    const it = item(i);
    rows.push(html`<div key=${i} id=${"row" + i} role="option" aria-selected=${i === active} aria-setsize=${count}
      aria-posinset=${i + 1}
      class="row" onClick=${() => (setActive(i), it && open(it))}>${it ? row(it) : "…"}</div>`);
  }
  return html`<div class="list" ref=${box} role="listbox" aria-label=${label} tabindex="0"
    aria-activedescendant=${count ? "row" + active : undefined}
      onScroll=${(e) => setTop(e.target.scrollTop)} onKeyDown=${key}>
    <div role="presentation" style=${{ height: total + "px" }}>
      <div role="presentation" style=${{ transform: `translateY(${offset}px)` }}>${rows}</div></div></div>`;
}
