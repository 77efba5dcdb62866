"use strict";
(() => {
  const table = document.getElementById("repositories");
  if (table === null) return;
  const controls = document.getElementById("controls");
  const count = document.getElementById("count");
  const none = document.getElementById("none");
  const text = document.getElementById("filter-text");
  const selects = new Map();
  for (const name of ["owner", "status", "release"]) {
    const select = document.getElementById(`filter-${name}`);
    if (select !== null) selects.set(name, select);
  }
  const map = document.getElementById("map");
  const mapped = new Map(map === null ? [] : [...map.tBodies[0].rows].map((row) => [row.dataset.of, row]));
  const repositories = [...table.tBodies[0].rows].map((row) => ({
    row,
    mapped: mapped.get(row.id),
    text: row.textContent.toLowerCase(),
  }));
  const columns = [...document.querySelectorAll("[data-filter] .column")];

  function update() {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = [...selects].filter(([, select]) => select.value !== "").map(([name, select]) => [name, select.value]);
    let number = 0;
    for (const each of repositories) {
      const wanted =
        chosen.every(([name, value]) => each.row.dataset[name] === value) &&
        words.every((word) => each.text.includes(word));
      if (each.row.hidden === wanted) each.row.hidden = !wanted;
      if (each.mapped !== undefined && each.mapped.hidden === wanted) each.mapped.hidden = !wanted;
      number += wanted;
    }
    const all = repositories.length;
    count.textContent = `${number.toLocaleString("en")} of ${all.toLocaleString("en")} ${all === 1 ? "repository" : "repositories"}`;
    none.hidden = number > 0;
    for (const column of columns) {
      const is = column.dataset.key === selects.get("release").value;
      column.classList.toggle("chosen", is);
      column.setAttribute("aria-pressed", is);
    }
  }

  function choose(name, value) {
    const select = selects.get(name);
    select.value = select.value === value ? "" : value;
    update();
    if (select.value !== "") controls.scrollIntoView({ block: "nearest" });
  }

  // ---- sorting: by the texts of a column, its numbers, or the order in which the page came

  const number = (cell) => {
    const shown = cell.dataset.key === undefined ? cell.textContent.replaceAll(",", "") : cell.dataset.key;
    return shown.trim() === "" ? -1 : Number(shown);
  };
  const keys = {
    text: (cell) => cell.textContent.trim().toLowerCase(),
    number,
  };

  function sort(head, rows) {
    const kind = head.dataset.sort;
    const before = head.getAttribute("aria-sort");
    // Numbers begin with the greatest, as what is looked for is the most of something.
    const up = before === null ? kind !== "number" : before === "descending";
    for (const each of head.parentNode.cells) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const made = rows.map((row, order) => [kind === "order" ? order : keys[kind](row.cells[head.cellIndex]), order, row]);
    made.sort(([a, first], [b, second]) => (a < b ? (up ? -1 : 1) : a > b ? (up ? 1 : -1) : first - second));
    rows[0].parentNode.append(...made.map(([, , row]) => row));
  }

  function button(label) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = label;
    return made;
  }

  for (const each of document.querySelectorAll("table.list")) {
    const rows = [...each.tBodies[0].rows];
    for (const head of each.querySelectorAll("th[data-sort]")) {
      const made = button(head.textContent);
      head.replaceChildren(made);
      made.addEventListener("click", () => sort(head, rows));
    }
  }

  // ---- what filters by a click

  for (const column of columns) {
    column.setAttribute("role", "button");
    column.setAttribute("tabindex", "0");
    column.addEventListener("click", () => choose("release", column.dataset.key));
    column.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose("release", column.dataset.key);
    });
  }
  for (const owner of document.querySelectorAll("#owners th[data-owner]")) {
    const made = button(owner.textContent);
    owner.replaceChildren(made);
    made.addEventListener("click", () => choose("owner", owner.dataset.owner));
  }

  // ---- the map: the newest releases are at its end. A cell says what it is when it is pointed at, since
  // thousands of titles would be long.

  if (map !== null) map.parentNode.scrollLeft = map.scrollWidth;
  map?.tBodies[0].addEventListener("pointerover", (event) => {
    const cell = event.target.closest("td");
    if (cell === null || cell.title !== "") return;
    let first = 1;
    for (let left = cell.previousElementSibling; left !== cell.parentNode.cells[0]; left = left.previousElementSibling) first += left.colSpan;
    const heads = map.tHead.rows[0].cells;
    const [from, to] = [heads[first].textContent, heads[first + cell.colSpan - 1].textContent];
    cell.title = `${cell.parentNode.cells[0].textContent}, torch ${from === to ? from : `${from} to ${to}`}: ${cell.ariaLabel}`;
  });

  controls.addEventListener("input", update);
  controls.addEventListener("change", update);
  controls.querySelector("button").addEventListener("click", () => {
    controls.reset();
    update(); // in the same turn: an event "reset" comes while the fields still hold the old values
  });
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.hidden = false;
  document.body.classList.add("live");
  update();
})();
