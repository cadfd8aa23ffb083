// Asks the simulator for runs: here, the server that sent this page. The static form of the page
// has another module of this name, with the same functions and a simulator in WebAssembly.

async function answer(response) {
  const body = await response.json();
  if (!response.ok) throw new Error(body.error);
  return body;
}

// catalogue has the commands with their options, and the stories.
export async function catalogue() {
  return answer(await fetch("api/catalogue"));
}

// run runs the words of a command line and returns its trace, as doc.go of package trace has it.
export async function run(words) {
  return answer(await fetch("api/run", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(words),
  }));
}
