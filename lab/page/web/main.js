// Puts the page together: it runs the command line, plays the run, and keeps both in the address.

import * as simulator from "./simulator.js";
import { html, byId, number } from "./svg.js";
import { PROGRAM, split, join, add, toFragment, fromFragment } from "./command.js";
import { Player } from "./player.js";
import { Palette } from "./palette.js";
import { Topology } from "./topology.js";
import { Chart } from "./chart.js";
import { Inspector } from "./inspector.js";
import { Processes, happened, drawLamps, drawCounters, drawUnderWay } from "./panels.js";
import { Teller, slideLists } from "./story.js";
import * as options from "./options.js";

const FIRST = "election --algorithm bully --ids 3,5,6,12,32,80 --crash 80@0 --initiator 6";

const player = new Player(draw);
const inspector = new Inspector((name) => optionsOf(words[0]).some((o) => o.name === name), fault);
const pick = (what, event) => inspector.open(player, what, event);
const topology = new Topology(byId("topology"), pick);
const chart = new Chart({ box: byId("chart-box"), heads: byId("chart-heads"), body: byId("chart") }, pick,
  (time) => { player.pause(); player.toTime(time); });
const processes = new Processes(byId("processes"), pick);

let commands = [];
const optionsOf = (command) => commands.find((c) => c.name === command)?.options ?? [];
let teller;
let palette = new Palette();
let words = [];
let other; // the words of the run that is laid over
const traces = new Map(); // by line, the last few

async function traceOf(line) {
  const key = JSON.stringify(line);
  if (!traces.has(key)) {
    const trace = await simulator.run(line);
    traces.set(key, trace);
    if (traces.size > 6) traces.delete(traces.keys().next().value);
  }
  return traces.get(key);
}

// show runs a command line and shows it at a moment. An error leaves what was shown before.
async function show(next, { moment = {}, push = true, fresh } = {}) {
  document.body.setAttribute("aria-busy", "true");
  try {
    const [trace, over] = await Promise.all([traceOf(next.words), next.other && traceOf(next.other)]);
    words = next.words;
    other = next.other;
    byId("error").textContent = "";
    palette = new Palette(trace, over);
    player.load(trace, over);
    for (const view of [topology, chart, processes]) view.load(player, palette);
    drawCommand(fresh);
    options.show(commands, words, trace, (changed) => show({ words: changed, other }));
    if (push) history.pushState({ depth: depth() + 1 }, "", address()); // before it is drawn: that notes the moment
    if (moment.step) player.go(moment.step, moment.time);
    else if (moment.time) player.toTime(moment.time);
    else player.go(0, 0);
    byId("undo").disabled = depth() === 0;
  } catch (error) {
    byId("error").textContent = error.message;
    byId("line").value = join(next.words);
  } finally {
    document.body.removeAttribute("aria-busy");
  }
}

// fault adds an option that a click has chosen, and shows the moment of the click again.
function fault(option, value, time) {
  show({ words: add(words, option, value), other }, { moment: { time }, fresh: `--${option} ${value}` });
}

function address() {
  return toFragment({ words, other, story: teller.place, step: player.k, time: number(player.now), present: onWall() });
}

// tell shows a moment of a story; a run that is shown already plays on until then.
async function tell(line, time, same) {
  if (same && join(line) === join(words)) player.playTo(time);
  else await show({ words: line }, { moment: { time } });
}

const onWall = () => document.body.classList.contains("present");

// present shows the page as on a wall, or as at a desk.
function present(wall) {
  document.body.classList.toggle("present", wall);
  if (!player.trace) return;
  teller.fit();
  chart.measure();
  draw();
}

// depth is how many runs lie before this one in the window's history.
const depth = () => history.state?.depth ?? 0;

function drawCommand(fresh) {
  byId("line").value = join(words);
  const shown = byId("fresh");
  shown.hidden = !fresh;
  if (fresh) shown.replaceChildren("added to the command: ", html("code", {}, fresh));
  const { notes, truncated, ended, family, algorithm } = player.trace;
  byId("notes").replaceChildren(...[...notes, truncated && "The run was longer than what is shown of it.",
    ended === "limit" && family !== "detector" && "The run did not end by itself: it was cut off."]
    .filter(Boolean).map((n) => html("li", {}, n)));
  byId("real").hidden = !optionsOf("ensemble").length || !/^zookeeper/.test(algorithm);
  byId("compare").textContent = other ? "Stop comparing" : "Compare with this run";
  byId("compared").hidden = !other;
  if (other) {
    const line = html("code", {}, join(other));
    byId("compared").replaceChildren("laid over, dashed: ", line, `: ${player.other.words[0]}`);
  }
  byId("words").textContent = ["$ " + PROGRAM + join(words), ...player.trace.words].join("\n");
  document.title = `${player.trace.title}: zk-lite lab`;
}

function draw() {
  topology.draw();
  chart.follow();
  chart.draw();
  processes.draw();
  drawLamps(player);
  drawCounters(player, palette);
  drawUnderWay(player, palette, pick);
  const slider = byId("slider");
  slider.max = player.stops.length;
  slider.value = player.place;
  slider.setAttribute("aria-valuetext",
    `step ${player.place} of ${player.stops.length}, time ${player.clock(player.now)}`);
  byId("time").textContent = `t = ${player.clock(player.now)}`;
  byId("place").textContent = `step ${player.place} of ${player.stops.length}`;
  byId("happened").textContent = happened(player);
  const play = byId("play");
  play.setAttribute("aria-label", player.playing ? "pause" : "play");
  play.textContent = player.playing ? "Pause" : "Play";
  if (!player.playing) history.replaceState({ depth: depth() }, "", address());
}

function listen() {
  const on = (id, event, act) => byId(id).addEventListener(event, act);
  on("command", "submit", (e) => { e.preventDefault(); runLine(split(byId("line").value)); });
  on("algorithm", "change", (e) => {
    const [command, algorithm] = e.target.value.split(" ");
    show({ words: algorithm ? [command, "--algorithm", algorithm] : [command] });
  });
  on("undo", "click", () => history.back());
  on("compare", "click", () => {
    show({ words, other: other ? undefined : words }, { moment: { step: player.k, time: player.now } });
  });
  on("real", "click", onRealServers);
  on("link", "click", copyLink);
  on("present", "click", () => { byId("present").blur(); present(true); });
  on("first", "click", () => player.first());
  on("back", "click", () => player.back());
  on("play", "click", () => player.toggle());
  on("next", "click", () => player.next());
  on("last", "click", () => player.last());
  on("slider", "input", (e) => player.toPlace(Number(e.target.value)));
  on("speed", "change", (e) => { player.speed = Number(e.target.value); });
  on("upkeep", "change", (e) => { player.upkeep = e.target.checked; player.choose(); draw(); });
  addEventListener("popstate", open);
  addEventListener("keydown", keys);
}

// runLine runs what was typed. Real servers are asked again, for they answer otherwise each time.
function runLine(line) {
  if (line[0] === "ensemble") traces.delete(JSON.stringify(line));
  show({ words: line, other });
}

// keys are those that work wherever the focus is, but in fields. On a wall they tell the story, if there is one.
function keys(e) {
  if (e.target.closest("input, select, textarea, #inspector") || e.ctrlKey || e.altKey || e.metaKey) return;
  const act = (onWall() && teller.story && wallKey(e.key)) || { ArrowRight: () => player.next(),
    ArrowLeft: () => player.back(), Home: () => player.first(), End: () => player.last(), " ": () => player.toggle(),
    p: () => present(!onWall()), Escape: onWall() && (() => present(false)) }[e.key === "P" ? "p" : e.key];
  if (!act || (e.key === " " && e.target.closest("button, summary, a"))) return;
  e.preventDefault();
  act();
}

// wallKey is what a key does to a story; pages are turned by the buttons of a presenter.
function wallKey(key) {
  if (/^[1-9]$/.test(key)) return () => teller.predict(Number(key));
  const [forward, back] = [() => teller.forward(), () => teller.back()];
  return { ArrowRight: forward, " ": forward, PageDown: forward, ArrowLeft: back, PageUp: back,
    ArrowDown: () => player.next(), ArrowUp: () => player.back(),
    Home: () => teller.first(), End: () => teller.last() }[key];
}

// onRealServers repeats an election of the simulator on the servers that the page knows: with as
// many candidates, of which the leader is killed.
function onRealServers() {
  teller.leave(); // its moments are the simulator's
  const { trace } = player;
  const n = Math.min(16, trace.processes.filter((p) => !p.service).length);
  const herd = trace.algorithm === "zookeeper-herd" ? ["--herd"] : [];
  show({ words: ["ensemble", "--fault", "kill", "--n", String(n), ...herd] });
}

async function copyLink() {
  const said = byId("copied");
  try {
    await navigator.clipboard.writeText(location.href);
    said.textContent = "The link is copied: it holds the whole run.";
  } catch {
    said.textContent = "The link is in the address bar: it holds the whole run.";
  }
}

// open shows what the address says. A story's place is enough: it has the command and the moment.
function open() {
  const { words: line, other: over, story, step, time, present: wall } = fromFragment(location.hash);
  document.body.classList.toggle("present", wall || new URLSearchParams(location.search).has("present"));
  const told = teller.open(story);
  const moment = line || !told ? { step, time } : { time: told.at };
  return show({ words: line ?? split(told?.command ?? FIRST), other: over }, { moment, push: false });
}

async function start() {
  try {
    const known = await simulator.catalogue();
    commands = known.commands;
    teller = new Teller(known, tell);
    options.algorithms(commands);
    byId("slides").lastElementChild.replaceChildren(...slideLists(known));
    listen();
    await open();
  } catch (error) {
    byId("error").textContent = `The simulator does not answer: ${error.message}`;
  }
  document.body.dataset.ready = "true";
}

start();
