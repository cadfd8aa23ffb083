// The view of the servers' load over the last hour.
import { html, useState, useEffect, useRef } from "./vendor/preact.js";
import { get } from "./api.js";
import { useClock } from "./ensemble.js";
import { Slow } from "./slow.js";
import { Failure, Failures } from "./parts.js";
import { bytes } from "./text.js";

const hour = 3600e3;
const short = (n) => (n >= 100 ? n.toFixed(0) : n >= 1 ? n.toFixed(1) : n.toPrecision(2).replace(/\.?0+$/, ""));

// A plot's line is made of the rows of a server: value(row) of a gauge, rate of a counter, mean of a histogram.
const gauge = (name) => (row) => row[name];
const rate = (name) => (row, before) => (row[name] - before[name]) / ((row.time - before.time) / 1000);
const mean = (name) => (row, before) => {
  const n = row[name + "_count"] - before[name + "_count"];
  return n > 0 ? (1000 * (row[name + "_sum"] - before[name + "_sum"])) / n : 0;
};

const plots = [
  ["Requests of ZooKeeper clients, a second", rate("packets_received")],
  ["Mean time to the reply, milliseconds", mean("request_duration_seconds")],
  ["Requests in progress", gauge("outstanding_requests")],
  ["Writes that await their result", gauge("pending_commands")],
  ["Syncs of the log, a second", rate("log_fsync_seconds_count")],
  ["Mean time of a sync, milliseconds", mean("log_fsync_seconds")],
  ["Processors in use", rate("process_cpu_seconds_total")],
  ["Memory of the process", gauge("process_resident_memory_bytes"), bytes],
  ["Connections", gauge("num_alive_connections")],
  ["Watches", gauge("watch_count")],
];

export function Load() {
  const now = useClock(10_000);
  const servers = useRef(new Map()); // id → {rows, error}
  const [, draw] = useState();
  const [error, setError] = useState(null);
  useEffect(() => {
    const abort = new AbortController();
    read(servers.current, abort.signal).then(
      () => (setError(null), draw({})),
      (e) => abort.signal.aborted || setError(e),
    );
    return () => abort.abort();
  }, [now]);
  const all = [...servers.current];
  return html`<div><section aria-label="Load"><h1>Load</h1>
    <p class="note">The last hour, as each server has kept it; a restart begins anew.</p>
      <p class="legend">${all.map(([id], i) => html`<span class=${"k" + (i % 7)}>━ server ${id} </span>`)}</p>
      <${Failure} error=${error} /><${Failures} of=${all.map(([id, { error: e }]) => ({ id, error: e }))} /></section>
    <div class="plots">${plots.map(([title, value, unit]) => html`<${Plot} key=${title} title=${title} value=${value}
      unit=${unit ?? short} servers=${all} />`)}</div><${Slow} /></div>`;
}

// read asks each server for what is new.
async function read(servers, signal) {
  const { servers: list } = await get("/v1/servers", {}, signal);
  for (const { id } of list) if (!servers.has(id)) servers.set(id, { rows: [] }); // in this order
  await Promise.all(
    list.map(async ({ id }) => {
      const { rows } = servers.get(id);
      try {
        const { names, rows: news } = await get("/v1/history", { server: id, since: rows.at(-1)?.time ?? 0 }, signal);
        const all = [
          ...rows,
          ...news.map((r) => ({ time: r.time, ...Object.fromEntries(names.map((n, i) => [n, r.values[i]])) })),
        ];
        servers.set(id, { rows: all.filter((r) => r.time > all.at(-1).time - hour) });
      } catch (error) {
        if (!signal.aborted) servers.set(id, { rows, error });
      }
    }),
  );
}

const width = 400,
  height = 110;

function Plot({ title, value, unit, servers }) {
  const lines = servers.map(([id, { rows }]) => [
    id,
    rows.slice(1).map((r, i) => [r.time, Math.max(0, value(r, rows[i]) || 0)]),
  ]);
  const top = Math.max(...lines.flatMap(([, l]) => l.map(([, v]) => v)), 0) || 1;
  const end = Math.max(...lines.flatMap(([, l]) => l.map(([t]) => t)), 0);
  const begin = Math.min(...lines.flatMap(([, l]) => l.map(([t]) => t)), end);
  const span = Math.max(end - begin, hour / 12);
  const x = (t) => (width * (t - end + span)) / span,
    y = (v) => height - 4 - (v / top) * (height - 16);
  const last = lines.map(([id, l]) => `server ${id} ${l.length ? unit(l.at(-1)[1]) : "–"}`).join(", ");
  return html`<figure class="panel"><figcaption><strong>${title}</strong><br /><small>${last}</small></figcaption>
    <svg viewBox=${`0 0 ${width} ${height}`} role="img" aria-label=${`${title}: ${last}; at most ${unit(top)}`}>
      <line class="axis" x1="0" x2=${width} y1=${height - 4} y2=${height - 4} />
        <line class="axis" x1="0" x2=${width} y1="12" y2="12" />
      <text x="2" y="10">${unit(top)}</text>
      ${lines.map(([, l], i) => html`<polyline class=${"k" + (i % 7)}
        points=${l.map(([t, v]) => `${x(t).toFixed(1)},${y(v).toFixed(1)}`).join(" ")} />`)}</svg></figure>`;
}
