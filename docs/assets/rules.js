// The filter above the index of rules. Without scripts, the whole list is there.
(function () {
  "use strict";

  function element(name, attributes, text) {
    const made = document.createElement(name);
    Object.assign(made, attributes);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function choice(label, values) {
    const select = element("select", { ariaLabel: label });
    select.append(element("option", { value: "" }, label));
    for (const value of values) select.append(element("option", { value }, value));
    return select;
  }

  function start() {
    const box = document.querySelector(".rule-filter");
    if (!box || box.childElementCount) return;
    const input = element("input", {
      type: "search",
      placeholder: "Filter by code, name, function or text",
      ariaLabel: "Filter rules",
    });
    const library = choice("All libraries", box.dataset.libraries.split(" "));
    const fix = choice("Any fix", ["safe fix", "unsafe fix", "suggestion", "report only"]);
    const count = element("output", { ariaLive: "polite" });
    box.append(input, library, fix, count);

    const topics = [...document.querySelectorAll(".rule-topic")].map((heading) => {
      let next = heading.nextElementSibling;
      while (next && !next.querySelector("tbody")) next = next.nextElementSibling;
      const rows = [...next.querySelectorAll("tbody tr")].map((row) => {
        const cells = [...row.cells].map((cell) => cell.textContent.trim());
        return { row, text: cells.join(" ").toLowerCase(), library: cells[2].split(":")[0], fix: cells[3] };
      });
      return { heading, table: next, rows };
    });

    function update() {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      let all = 0;
      for (const topic of topics) {
        let here = 0;
        for (const rule of topic.rows) {
          const fits =
            words.every((word) => rule.text.includes(word)) &&
            (!library.value || rule.library === library.value) &&
            (!fix.value || rule.fix === fix.value);
          rule.row.hidden = !fits;
          if (fits) here += 1;
        }
        topic.heading.hidden = topic.table.hidden = here === 0;
        shown += here;
        all += topic.rows.length;
      }
      count.textContent = shown === all ? `${all} rules` : `${shown} of ${all} rules`;
    }

    // A filter can be linked to: rules/#q=symeig
    const wanted = new URLSearchParams(location.hash.slice(1)).get("q");
    if (wanted) input.value = wanted;
    for (const control of [input, library, fix]) control.addEventListener("input", update);
    update();
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
