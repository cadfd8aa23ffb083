// What all parts of the page share: who has logged in, the dialog that is open, what was said last, and how to undo it.
import { useState, useEffect } from "./vendor/preact.js";

const state = { identity: null, dialog: null, said: null, changes: 0 };
const listeners = new Set();

// set changes some of it.
export function set(change) {
  Object.assign(state, change);
  for (const listener of listeners) listener({});
}

// useStore is the state; the component is drawn anew when it changes.
export function useStore() {
  const [, draw] = useState();
  useEffect(() => {
    listeners.add(draw);
    return () => listeners.delete(draw);
  }, []);
  return state;
}

export const mayWrite = ({ identity }) => Boolean(identity && (!identity.anonymous || identity.administrator));

// done says what has been done, has the views read again, and offers undo, a function that undoes it.
export const done = (text, undo) => set({ said: { text, undo }, dialog: null, changes: state.changes + 1 });
export const readAgain = () => set({ changes: state.changes + 1 });
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
