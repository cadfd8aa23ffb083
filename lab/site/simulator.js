// Asks the simulator for runs: here, one in WebAssembly beside this page. The page that a server
// sends has another module of this name, with the same functions.

import "./wasm_exec.js";

const ready = (async () => {
  const go = new globalThis.Go();
  const response = await fetch("lab.wasm");
  if (!response.ok) throw new Error(`lab.wasm: ${response.status}`);
  const { instance } = await WebAssembly.instantiate(await response.arrayBuffer(), go.importObject);
  go.run(instance); // sets zkLiteLab, and waits to be called
})();

function answer({ error, data }) {
  if (error !== undefined) throw new Error(error);
  return JSON.parse(data);
}

export async function catalogue() {
  await ready;
  return answer(globalThis.zkLiteLab.catalogue());
}

export async function run(words) {
  await ready;
  return answer(globalThis.zkLiteLab.run(JSON.stringify(words)));
}
