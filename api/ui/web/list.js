// A list of up to millions of rows, of which only those in sight exist.
import { html, useState, useEffect, useRef } from "./vendor/preact.js";

const rowHeight = 30; // pixels, as in style.css
const highest = 30e6; // pixels that a browser can make an element high
let lists = 0; // that have been made
let takesFocus = false; // another list, since its user has gone on by the keyboard
const page = 200; // rows that are asked for at a time

// List shows count rows. load(from, signal) resolves to the rows of a page; row(item) draws one; version tells when the
// rows may have changed; current(item) marks one, and at is its index if that is known, or else -1; open(item) and up()
// are what Enter and Backspace do. After those, the list takes the focus whose takes has become another.
export function List({ label, count, version, load, row, current, at, takes, open, up }) {
  const box = useRef();
  const [id] = useState(() => `list${++lists}-`); // of the rows, before their numbers
  const pages = useRef(new Map());
  const before = useRef(new Map()); // pages that are shown until those of the new version are there
  const [, draw] = useState();
  const [top, setTop] = useState(0);
  const [active, setActive] = useState(0);
  const [height, setHeight] = useState(600);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setHeight(entry.contentRect.height));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (!takes || !takesFocus) return;
    box.current.focus();
    takesFocus = false;
  }, [takes]);
  useEffect(() => {
    if (pages.current.size) before.current = pages.current;
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
    const into = pages.current;
    for (const p of new Set([Math.floor(first / page), Math.floor(Math.min(count - 1, first + seen) / page)])) {
      if (count === 0 || into.has(p)) continue;
      into.set(p, null);
      load(p * page, abort.signal).then(
        (rows) => (into.set(p, rows), draw({})),
        () => into.delete(p),
      );
    }
    return () => {
      abort.abort();
      for (const [p, rows] of into) if (!rows) into.delete(p);
    };
  }, [Math.floor(first / page), Math.floor((first + seen) / page), version, count]);

  const item = (i) => [pages, before].map((m) => m.current.get(Math.floor(i / page))?.[i % page]).find(Boolean);
  const show = (i) => {
    i = Math.max(0, Math.min(count - 1, i));
    setActive(i);
    const y = scaled ? (i / (count - seen + 2)) * (total - height) : i * rowHeight;
    const b = box.current;
    if (scaled || y < b.scrollTop) b.scrollTop = y;
    else if (y + rowHeight > b.scrollTop + b.clientHeight) b.scrollTop = y + rowHeight - b.clientHeight;
  };
  useEffect(() => {
    if (at >= 0) show(at);
  }, [at]);
  const key = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: seen - 2, PageUp: 2 - seen, Home: -count, End: count }[
      event.key
    ];
    const it = item(active);
    const down = it && (() => open(it));
    const leave = { Enter: down, ArrowRight: down, Backspace: up, ArrowLeft: up }[event.key];
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
    rows.push(html`<div key=${i} id=${id + i} role="option" aria-selected=${i === active} aria-setsize=${count}
      aria-posinset=${i + 1}
      aria-current=${it && current(it) ? "true" : undefined} class="row"
      onClick=${() => (setActive(i), it && open(it))}>${it ? row(it) : "…"}</div>`);
  }
  return html`<div class="list" ref=${box} role="listbox" aria-label=${label} tabindex="0"
    aria-activedescendant=${count ? id + active : undefined}
      onScroll=${(e) => setTop(e.target.scrollTop)} onKeyDown=${key}>
    <div role="presentation" style=${{ height: total + "px" }}>
      <div role="presentation" style=${{ transform: `translateY(${offset}px)` }}>${rows}</div></div></div>`;
}
