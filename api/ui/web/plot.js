// Charts of the servers' last hour.
import { html, useMemo } from "./vendor/preact.js";
import { hour, points } from "./history.js";
import { time } from "./text.js";

const width = 400,
  height = 120,
  top = 14, // above the highest value, for the scale
  bottom = 14; // below 0, for the time
const spans = [4, 10, 20, 30, 60]; // minutes

export const short = (n) => (n >= 100 ? n.toFixed(0) : n >= 1 ? n.toFixed(1) : n.toPrecision(2).replace(/\.?0+$/, ""));

// spanOf is the time that charts show: the shortest of spans that has all rows.
export function spanOf(servers) {
  const times = servers.flatMap(([, { rows }]) => (rows.length ? [rows[0].time, rows.at(-1).time] : []));
  const end = Math.max(...times, 0);
  const minutes = times.length ? (end - Math.min(...times)) / 60e3 : 0;
  return { end, span: 60e3 * (spans.find((s) => s >= minutes) ?? spans.at(-1)) };
}

// Plot shows a measure of each server: value(row, before), written by unit. at is the time that the pointer or the
// keyboard has chosen in any of the charts, and choose(time) chooses it.
export function Plot({ title, value, unit = short, servers, marks = [], at, choose }) {
  const { end, span } = spanOf(servers);
  const lines = useMemo(() => servers.map(([id, { rows }]) => [id, points(rows, value)]), [end, servers.length]);
  const most = Math.max(...lines.flatMap(([, pieces]) => pieces.flat().map(([, v]) => v)), 0) || 1;
  const x = (t) => width - (width * (end - t)) / span,
    y = (v) => height - bottom - (v / most) * (height - top - bottom);
  const place = ([t, v]) => `${x(t).toFixed(1)},${y(v).toFixed(1)}`;
  const times = [...new Set(lines.flatMap(([, pieces]) => pieces.flat().map(([t]) => t)))].sort((a, b) => a - b);
  const nearest = (pieces, t) =>
    pieces.flat().reduce((best, p) => (best && Math.abs(best[0] - t) <= Math.abs(p[0] - t) ? best : p), null);
  const shown = at ?? end;
  const read = lines.map(([id, pieces]) => {
    const p = nearest(pieces, shown);
    return `server ${id} ${p && Math.abs(p[0] - shown) < 30e3 ? unit(p[1]) : "–"}`;
  });
  const said = `${at ? time(at) + ": " : ""}${read.join(", ")}`;
  const point = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    choose(end - span * (1 - (event.clientX - box.left) / box.width));
  };
  const key = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") choose(null);
    if (!step || !times.length) return;
    event.preventDefault();
    const i = at ? times.findLastIndex((t) => t <= at) : times.length;
    choose(times[Math.min(Math.max(i + step, 0), times.length - 1)]);
  };
  const minutes = span / 60e3;
  return html`<figure class="panel"><figcaption><strong>${title}</strong><br /><small>${said}</small></figcaption>
    <svg viewBox=${`0 0 ${width} ${height}`} role="slider" tabindex="0" aria-label=${title} aria-valuemin=${-minutes}
      aria-valuemax="0" aria-valuenow=${Math.round((shown - end) / 60e3)} aria-valuetext=${`${said}; at most ${unit(most)}`}
      onPointerMove=${point} onPointerLeave=${() => choose(null)} onKeyDown=${key} onBlur=${() => choose(null)}>
      <line class="axis" x1="0" x2=${width} y1=${y(0)} y2=${y(0)} />
      <line class="axis" x1="0" x2=${width} y1=${y(most)} y2=${y(most)} />
      <text x="2" y=${top - 4}>${unit(most)}</text>
      <text x="2" y=${height - 3}>${minutes} min ago</text>
      <text x=${width / 2} y=${height - 3} text-anchor="middle">${minutes / 2} min</text>
      <text x=${width - 2} y=${height - 3} text-anchor="end">now</text>
      ${marks.map(
        ({ time: t, text }) =>
          html`<line class="mark" x1=${x(t)} x2=${x(t)} y1=${top - 4} y2=${y(0)}><title>${time(t)}: ${text}</title></line>`,
      )}
      ${lines.map(([id, pieces], i) =>
        pieces.map(
          (piece) => html`<polyline class=${"k" + (i % 7)}
        data-server=${id} points=${piece.map(place).join(" ")} />${
          piece.length === 1 &&
          html`<circle class=${"k" + (i % 7)} cx=${x(piece[0][0])} cy=${y(piece[0][1])} r="2.5" />`
        }`,
        ),
      )}
      ${at && html`<line class="at" x1=${x(at)} x2=${x(at)} y1=${top - 4} y2=${y(0)} />`}</svg></figure>`;
}

// Legend names the servers' lines.
export const Legend = ({ servers }) =>
  html`<p class="legend">${servers.map(
    ([id], i) =>
      html`<span><svg viewBox="0 0 30 8" aria-hidden="true"><polyline class=${"k" + (i % 7)} points="0,4 30,4" /></svg> server ${id}</span>`,
  )}</p>`;

// Marks are what happened, in words; in the charts they are upright lines.
export const Marks = ({ of }) =>
  of.length > 0 &&
  html`<p class="note" id="marks">┊ ${of
    .slice(-8)
    .map(({ time: t, text }) => `${time(t)} ${text}`)
    .join("; ")}</p>`;
