"use strict";
document.documentElement.classList.add("scripted");
const form = document.querySelector(".filter");

function wordsOf(element) {
  element.words ??= element.textContent.toLowerCase();
  return element.words;
}

function wanted() {
  const value = name => form.elements[name].value;
  return {
    words: value("search").toLowerCase().split(/\s+/).filter(Boolean),
    outcome: value("outcome"), column: value("backend"), topic: value("topic"), level: value("level"),
  };
}

function isOf(element, filter) {
  return (!filter.topic || element.dataset.topic === filter.topic) &&
    (!filter.level || element.dataset.level === filter.level);
}

function hasOutcome(outcomes, filter) {
  if (filter.outcome === "open") return outcomes.some(one => one !== "PASS");
  return !filter.outcome || outcomes.includes(filter.outcome);
}

/* A requirement is shown where its id and title hold the words, or one of its failures that is shown does, and
   one of the backends shown has the outcome. */
function filterMatrix(filter, found) {
  let count = 0;
  for (const body of document.querySelectorAll(".matrix tbody")) {
    let any = false;
    for (const row of body.querySelectorAll(".requirement")) {
      const cells = [...row.querySelectorAll(".cell")];
      cells.forEach((cell, place) => { cell.hidden = filter.column !== "" && +filter.column !== place; });
      const outcomes = cells.filter(cell => !cell.hidden).flatMap(cell => cell.dataset.outcomes.split(" "));
      const said = found.has(row.id) || filter.words.every(word => wordsOf(row.cells[0]).includes(word));
      row.hidden = !(said && isOf(row, filter) && hasOutcome(outcomes, filter));
      any ||= !row.hidden;
      count += !row.hidden;
    }
    body.hidden = !any;
  }
  document.querySelectorAll(".matrix thead .row").forEach((head, place) => {
    head.hidden = filter.column !== "" && +filter.column !== place;
  });
  return count;
}

/* A failure is searched with its message; its heading stays as long as one of its cases is shown. The ids of the
   requirements of those that are shown go into found. */
function filterFailures(filter, found) {
  let count = 0;
  for (const section of document.querySelectorAll(".failure[data-topic]")) {
    const heading = wordsOf(section.querySelector("h3"));
    let any = false;
    for (const one of section.querySelectorAll(".case")) {
      const columns = one.dataset.columns.split(" ");
      one.hidden = !(isOf(section, filter) && hasOutcome([one.dataset.outcome], filter) &&
        (filter.column === "" || columns.includes(filter.column)) &&
        filter.words.every(word => heading.includes(word) || wordsOf(one).includes(word)));
      any ||= !one.hidden;
      count += !one.hidden;
    }
    section.hidden = !any;
    if (any) found.add(section.dataset.rule);
  }
  return count;
}

function choose() {
  const filter = wanted(), found = new Set();
  const cases = filterFailures(filter, found), rules = filterMatrix(filter, found);
  const all = [document.querySelectorAll(".requirement").length, document.querySelectorAll(".case").length];
  form.querySelector("output").value =
    `${rules} of ${all[0]} requirements` + (all[1] ? `, ${cases} of ${all[1]} failures and deviations` : "") + " shown";
}

/* A link to something that a filter hides clears the filter. */
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.closest("[hidden]")) {
    form.reset();
    choose();
    target.scrollIntoView();
  }
}

async function copy(button) {
  const text = button.parentElement.querySelector("code").textContent;
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    /* a page from a disk may have no clipboard: the old way, by a selection */
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.focus();
    area.select();
    done = document.execCommand("copy");
    area.remove();
    button.focus();
  }
  button.textContent = done ? "copied" : "failed";
  setTimeout(() => { button.textContent = "copy"; }, 1500);
}

/* Arrows go from cell to cell of the matrix, past what is hidden. */
function step(cell, key) {
  const row = cell.parentElement, place = cell.cellIndex;
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const shown = [...row.querySelectorAll(".cell")].filter(one => !one.hidden);
    return shown[shown.indexOf(cell) + (key === "ArrowLeft" ? -1 : 1)];
  }
  const rows = [...document.querySelectorAll(".requirement")].filter(one => !one.hidden);
  return rows[rows.indexOf(row) + (key === "ArrowUp" ? -1 : 1)]?.cells[place];
}

document.addEventListener("keydown", event => {
  const typing = event.target.matches?.("input, select, textarea");
  if (event.key === "/" && form && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    form.elements.search.focus();
    return;
  }
  const cell = event.key.startsWith("Arrow") && event.target.closest?.(".matrix .cell");
  const next = cell && step(cell, event.key);
  if (next) {
    event.preventDefault();
    (next.querySelector("a") ?? next).focus();
  }
});
document.addEventListener("click", event => {
  const button = event.target.closest(".copy");
  if (button) copy(button);
});
if (form) {
  form.addEventListener("input", choose);
  form.addEventListener("reset", () => setTimeout(choose));
  form.addEventListener("submit", event => event.preventDefault());
  addEventListener("hashchange", reveal);
  choose();
}
