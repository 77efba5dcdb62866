"use strict";
(() => {
  const table = document.getElementById("places");
  if (table === null) return;
  const controls = document.getElementById("controls");
  const count = document.getElementById("count");
  const none = document.getElementById("none");
  const filter = {};
  for (const name of ["text", "release", "effect", "effort", "rule"]) {
    filter[name] = document.getElementById(`filter-${name}`);
  }
  const body = table.tBodies[0];
  const worst = ["breaks_on_import", "raises", "may_raise", "changes", "warns", "may_differ", "pinned", "outdated"];
  const efforts = ["safe", "unsafe", "by_hand"];
  const effects = new Map([...filter.effect.options].map((option) => [option.value, option.text]));
  const releases = [...filter.release.options].slice(1).map((option) => option.text);

  // Rows of releases and columns of the chart, which choose a release.
  const spans = document.querySelectorAll(".releases tbody tr, .column");
  const first = (each) => each.dataset.release ?? each.dataset.key;

  const places = [...body.rows].map((row) => {
    const cell = row.querySelector(".effect");
    return {
      row,
      cell: { chip: cell.querySelector(".chip"), since: cell.querySelector(".since"), effort: row.querySelector(".effort") },
      text: row.textContent.toLowerCase(),
      shown: { chip: cell.querySelector(".chip").className, name: cell.querySelector(".chip").textContent,
               since: cell.querySelector(".since").textContent, effort: row.querySelector(".effort").textContent },
      order: Number(row.dataset.order),
      effect: row.dataset.effect,
      effort: row.dataset.effort,
    };
  });

  // What a release does to a place: the same as `Since.effect` and `Since.lacks` say.
  function effectIn(place, release) {
    const data = place.row.dataset;
    if (release === "") return data.effect;
    const number = Number(release);
    if (data.needs !== "" && number < Number(data.needs)) return "lacking";
    const reached = (effect) => data[effect] !== "" && Number(data[effect]) <= number;
    const ceased = reached("warns") && reached("outdated") && Number(data.outdated) > Number(data.warns);
    return worst.find((effect) => reached(effect) && !(effect === "warns" && ceased)) || null;
  }

  function effortIn(place, release) {
    const data = place.row.dataset;
    if (release !== "" && data.fix !== "" && Number(release) < Number(data.fix)) return "by_hand";
    return data.effort;
  }

  function show(place, release) {
    place.effect = effectIn(place, release);
    place.effort = effortIn(place, release);
    const { chip, since, effort } = place.cell;
    if (release === "" || place.effect === null) {
      chip.className = place.shown.chip;
      chip.textContent = place.shown.name;
      since.textContent = place.shown.since;
      effort.textContent = place.shown.effort;
      return;
    }
    const begins = Number(place.row.dataset[place.effect === "lacking" ? "needs" : place.effect]);
    chip.className = `chip ${place.effect}`;
    chip.textContent = effects.get(place.effect);
    since.textContent = place.effect === "lacking" ? releases[begins] : begins < 0 ? `before ${releases[0]}` : `since ${releases[begins]}`;
    effort.textContent = [...filter.effort.options].find((option) => option.value === place.effort).text;
  }

  function update() {
    const release = filter.release.value;
    const words = filter.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let number = 0;
    for (const place of places) {
      show(place, release);
      const wanted =
        place.effect !== null &&
        (filter.effect.value === "" || place.effect === filter.effect.value) &&
        (filter.effort.value === "" || place.effort === filter.effort.value) &&
        (filter.rule.value === "" || place.row.dataset.rule === filter.rule.value) &&
        words.every((word) => place.text.includes(word));
      place.row.hidden = !wanted;
      number += wanted;
    }
    count.textContent = `${number} of ${places.length} places`;
    none.hidden = number > 0;
    for (const each of spans) {
      const last = Number(each.dataset.last || first(each));
      const chosen = release !== "" && Number(first(each)) <= Number(release) && Number(release) <= last;
      each.classList.toggle("chosen", chosen);
    }
  }

  const keys = {
    order: (place) => place.order,
    rule: (place) => place.row.dataset.rule,
    effect: (place) => ["lacking", ...worst].indexOf(place.effect),
    effort: (place) => efforts.indexOf(place.effort),
  };

  function sort(head) {
    const key = keys[head.dataset.sort];
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const each of table.querySelectorAll("th[data-sort]")) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    places.sort((one, other) => {
      const [a, b] = [key(one), key(other)];
      const way = a < b ? -1 : a > b ? 1 : 0;
      return (up ? way : -way) || one.order - other.order;
    });
    body.append(...places.map((place) => place.row));
  }

  for (const head of table.querySelectorAll("th[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => sort(head));
  }
  for (const each of spans) {
    each.addEventListener("click", () => {
      filter.release.value = filter.release.value === first(each) ? "" : first(each);
      update();
    });
  }
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
