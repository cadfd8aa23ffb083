// The last hour of each server, as it has kept it, and what happened in it.
import { useState } from "./vendor/preact.js";
import { get } from "./api.js";
import { useRounds } from "./store.js";

export const hour = 3600e3; // milliseconds
const every = 10_000; // as often as servers add a row
const gap = 2.5 * every; // between two rows: the server did not run, or could not be asked

// A measure of a server's rows: value(row, before) is a number, or undefined without a row before.
export const gauge =
  (name, factor = 1) =>
  (row) =>
    factor * row[name];
const difference = (name) => (row, before) =>
  before && row[name] >= before[name] ? row[name] - before[name] : undefined;
export const rate = (name) => (row, before) => {
  const d = difference(name)(row, before);
  return d === undefined ? d : d / ((row.time - before.time) / 1000);
};
export const mean = (name) => (row, before) => {
  const n = difference(name + "_count")(row, before);
  return n === undefined ? n : n && (1000 * (row[name + "_sum"] - before[name + "_sum"])) / n;
};

const known = new Map(); // id → {rows, error}, for all views

// useHistory is what is known: {servers: [[id, {rows, error}], ...], error}.
export function useHistory() {
  const [{ error }, setState] = useState({});
  const round = (signal) =>
    read(signal).then(
      () => signal.aborted || setState({}),
      (e) => signal.aborted || setState({ error: e }),
    );
  useRounds(round, every, []);
  return { servers: [...known], error };
}

// read asks each server for what is new.
async function read(signal) {
  const { servers } = await get("/v1/servers", {}, signal);
  for (const id of [...known.keys()]) if (!servers.some((s) => s.id === id)) known.delete(id);
  for (const { id } of servers) if (!known.has(id)) known.set(id, { rows: [] }); // in this order
  await Promise.all(
    servers.map(async ({ id }) => {
      const { rows } = known.get(id);
      try {
        const { names, rows: news } = await get("/v1/history", { server: id, since: rows.at(-1)?.time ?? 0 }, signal);
        const all = [
          ...rows,
          ...news.map((r) => ({ time: r.time, ...Object.fromEntries(names.map((n, i) => [n, r.values[i]])) })),
        ];
        known.set(id, { rows: all.filter((r) => r.time > all.at(-1).time - hour) });
      } catch (error) {
        if (!signal.aborted) known.set(id, { rows, error });
      }
    }),
  );
}

// points are those of a server's line: pieces without a gap of [time, value].
export function points(rows, value) {
  const pieces = [];
  rows.forEach((row, i) => {
    const before = i && row.time - rows[i - 1].time < gap ? rows[i - 1] : undefined;
    const v = value(row, before);
    if (v === undefined) return;
    if (!before || !pieces.length) pieces.push([]);
    pieces.at(-1).push([row.time, v]);
  });
  return pieces;
}

// marks are the elections and starts of the hour: [{time, text}, ...].
export function marks(servers) {
  const terms = new Map(),
    all = [];
  for (const [id, { rows }] of servers) {
    let term = rows[0]?.raft_term;
    rows.forEach((row, i) => {
      const before = rows[i - 1];
      if (
        before
          ? row.process_cpu_seconds_total < before.process_cpu_seconds_total
          : rows.at(-1).time - row.time < hour - gap
      )
        all.push({ time: row.time, text: `server ${id} started` });
      if (row.raft_term <= term || row.raft_leader <= 0) return;
      term = row.raft_term;
      if (!(terms.get(term)?.time <= row.time))
        terms.set(term, { time: row.time, text: `server ${row.raft_leader} was elected` });
    });
  }
  return [...all, ...terms.values()].sort((a, b) => a.time - b.time);
}
