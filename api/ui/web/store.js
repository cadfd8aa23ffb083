// What all parts of the page share: who has logged in, the dialog that is open, what was said last, and how to undo it.
import { useState, useEffect } from "./vendor/preact.js";

// shared is a state that components share: {state, set, use}. set changes some of it, and has the components drawn anew
// that use it.
export function shared(state) {
  const listeners = new Set();
  return {
    state,
    set: (change) => {
      Object.assign(state, change);
      for (const listener of listeners) listener({});
    },
    use: () => {
      const [, draw] = useState();
      useEffect(() => {
        listeners.add(draw);
        return () => listeners.delete(draw);
      }, []);
      return state;
    },
  };
}

// majority: this server has contact with one, as far as is known; local: without it, what this server has is shown.
const all = shared({ identity: null, dialog: null, said: null, changes: 0, majority: true, local: false });
export const { state, set, use: useStore } = all;

export const mayWrite = ({ identity, majority }) =>
  Boolean(majority && identity && (!identity.anonymous || identity.administrator));

// done says what has been done, has the views read again, and offers undo, a function that undoes it.
export const done = (text, undo) => set({ said: { text, undo }, dialog: null, changes: state.changes + 1 });
export const readAgain = () => set({ changes: state.changes + 1 });
// The majority is lost, and back; and what this server has is shown meanwhile.
export const hasMajority = () => state.majority;
export const isLocal = () => state.local;
export const lost = () => state.majority && set({ majority: false });
export const back = () => set({ majority: true, local: false, changes: state.changes + 1 });
export const showLocal = () => set({ local: true, changes: state.changes + 1 });
export const failed = (error) => set({ said: { text: error.message, hint: error.hint, error: true } });

// useAsync is what load(signal) resolves to; it is called again when one of deps changes. What was read before stays
// until then: {value, error, loading}.
export function useAsync(load, deps) {
  const [result, setResult] = useState({ loading: true });
  useEffect(() => {
    const abort = new AbortController();
    setResult((r) => ({ ...r, loading: true }));
    load(abort.signal).then(
      (value) => abort.signal.aborted || setResult({ value }),
      (error) => abort.signal.aborted || setResult({ error }),
    );
    return () => abort.abort();
  }, deps);
  return result;
}

// useRounds calls round(signal), which does not fail, again and again while the page is seen: millis after its end, so
// that one that takes long is not cut short by the next. It begins anew when one of deps changes.
export function useRounds(round, millis, deps) {
  useEffect(() => {
    const abort = new AbortController();
    let timer;
    const next = async () => {
      if (!document.hidden) await round(abort.signal);
      if (!abort.signal.aborted) timer = setTimeout(next, millis);
    };
    next();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, deps);
}

// usePoll is what load(signal) resolved to in the last of such rounds: {value, error}.
export function usePoll(load, millis, deps) {
  const [result, setResult] = useState({});
  const round = (signal) =>
    load(signal).then(
      (value) => signal.aborted || setResult({ value }),
      (error) => signal.aborted || setResult({ error }),
    );
  useRounds(round, millis, deps);
  return result;
}
