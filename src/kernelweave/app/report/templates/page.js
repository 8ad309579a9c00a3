"use strict";
// Readable without this script: it adds tooltips, sorting, the sample picker, copying and downloads.
// Text from the data goes in through textContent and attributes only.
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const data = JSON.parse($("#report-data").textContent);

  // -- tooltips ----------------------------------------------------------------------------------

  const tip = $("#tip");

  function placeTip(x, y) {
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, x + 14), document.documentElement.clientWidth - box.width - 8);
    const below = y + 18 + box.height < window.innerHeight;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${below ? y + 18 : Math.max(8, y - box.height - 12)}px`;
  }

  document.addEventListener("pointermove", (event) => {
    const target = event.target.closest && event.target.closest("[data-tip]");
    tip.hidden = !target;
    if (!target) return;
    tip.textContent = target.getAttribute("data-tip");
    placeTip(event.clientX, event.clientY);
  });
  document.addEventListener("pointerleave", () => { tip.hidden = true; });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

  // the name of a figure would show as a second tooltip
  for (const svg of $$("svg[role=img]")) {
    svg.setAttribute("aria-label", $("title", svg).textContent);
    svg.setAttribute("aria-describedby", $("desc", svg).id);
    svg.removeAttribute("aria-labelledby");
    $("title", svg).remove();
  }

  // -- sorting -----------------------------------------------------------------------------------

  const keyOf = (row, column) => {
    const cell = row.cells[column];
    const value = cell.getAttribute("data-sort");
    return value === null ? cell.textContent : Number(value);
  };

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  }

  function sortBy(table, column, descending) {
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => (descending ? -1 : 1) * compare(keyOf(a, column), keyOf(b, column)));
    table.tBodies[0].append(...rows);
    [...table.tHead.rows[0].cells].forEach((head, k) => {
      if (k === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  for (const table of $$("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      const numeric = head.classList.contains("num");
      button.addEventListener("click", () => {
        const sorted = head.getAttribute("aria-sort");
        sortBy(table, column, sorted ? sorted === "ascending" : numeric);
      });
    });
  }

  // -- copying -----------------------------------------------------------------------------------

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {  // pages opened from a file may not use the clipboard directly
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  }

  for (const button of $$("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await copy(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1600);
    });
  }

  // -- downloads: every table as CSV, every figure as SVG -----------------------------------------

  function save(name, text, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // text that a spreadsheet would take for a formula gets an apostrophe in front
  const risky = (text) => /^[=+\-@\t\r']/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$|^-$/i.test(text);

  function cellText(cell) {
    const value = cell.getAttribute("data-sort");
    const text = value === null ? cell.textContent.trim() : value;
    const safe = risky(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  const csvOf = (table) => [...table.rows].map((row) => [...row.cells].map(cellText).join(",")).join("\n") + "\n";

  const INLINE = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity",
    "font-family", "font-size", "font-weight", "text-anchor", "visibility", "display"];

  // alone, a drawing has neither the style of the page nor its width
  function svgOf(svg) {
    const copied = svg.cloneNode(true);
    const originals = [svg, ...$$("*", svg)];
    [copied, ...$$("*", copied)].forEach((node, k) => {
      const style = getComputedStyle(originals[k]);
      for (const name of INLINE) node.setAttribute(name, style.getPropertyValue(name));
    });
    const box = svg.getBoundingClientRect();
    copied.setAttribute("width", box.width);
    copied.setAttribute("height", box.height);
    return new XMLSerializer().serializeToString(copied);
  }

  function downloadButton(words, name, make) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy download";
    button.textContent = words;
    button.setAttribute("aria-label", `Download ${name}`);
    button.addEventListener("click", make);
    return button;
  }

  for (const table of $$("table.sortable")) {
    const name = `${table.id}.csv`;
    table.parentElement.after(downloadButton("CSV", name, () => save(name, csvOf(table), "text/csv")));
  }
  for (const svg of $$("figure svg[role=img]")) {
    const name = `${svg.id}.svg`;
    // that of a drawing in a closed part is closed with it
    svg.closest("figure details, figure").append(downloadButton("SVG", name, () => save(name, svgOf(svg), "image/svg+xml")));
  }

  // -- printing: everything open -------------------------------------------------------------------

  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = $$("details:not([open])");
    closed.forEach((details) => { details.open = true; });
  });
  window.addEventListener("afterprint", () => { closed.forEach((details) => { details.open = false; }); });

  // -- the sample pickers --------------------------------------------------------------------------

  // one in the section `root`, picked by dots with the attribute `mark` too
  function explorer(root, data, mark) {
    const list = $("[role=listbox]", root);
    const choice = $("select", root);
    const drawing = $(".taken-apart", root);
    const heading = $("h3", drawing);
    const rows = $$("g.row", drawing);
    const dots = $$(`circle[${mark}]`);
    const [low, high] = data.scale;
    const place = (value) => (100 * (Math.min(Math.max(value, low), high) - low)) / (high - low);
    const heightOf = (value) => 1 - (value + 0.06) / 1.12;  // of the axis from 0 to 1, with room on both sides
    let current = data.first[0];

    const brief = (k) => {
      if (!data.truth.length) return "";
      return data.truth[k] === data.predicted[k] ? data.truth[k] : `${data.truth[k]}, predicted ${data.predicted[k]}`;
    };

    const span = (text, kind) => {
      const element = document.createElement("span");
      element.className = kind;
      element.textContent = text;
      return element;
    };

    const largest = (k) => {
      const totals = data.parts.map((samples) => samples[k].reduce((a, b) => a + b, 0));
      return totals.indexOf(Math.max(...totals));
    };

    function draw(row, label, start, end, text) {
      const left = Math.min(place(start), place(end));
      const bar = $(".bar", row);
      bar.setAttribute("x", `${left.toFixed(2)}%`);
      bar.setAttribute("width", `${Math.max(Math.abs(place(end) - place(start)), 0.25).toFixed(2)}%`);
      $(".value", row).textContent = text;
      row.setAttribute("data-tip", `${label}: ${text}`);
    }

    function show(k, f) {
      let sum = 0;
      const order = data.order && data.order[f][k];
      const names = [...(order ? order.map((m) => data.rows[m]) : data.rows), "f, the sum"];
      const texts = data.texts[f][k].split(" ");
      data.parts[f][k].forEach((part, m) => {
        rows[m].classList.toggle("minus", part < 0);
        if (order) $(".label", rows[m]).textContent = data.shorts[order[m]];
        draw(rows[m], names[m], sum, sum + part, texts[m]);
        sum += part;
      });
      draw(rows[names.length - 1], names[names.length - 1], 0, sum, texts[names.length - 1]);
      const which = data.functions.length > 1 ? `; f of ${data.functions[f]}` : "";
      heading.textContent = data.headings[k] + which;
      $("desc", drawing).textContent = names.map((name, m) => `${name}: ${texts[m]}`).join("; ");
      if (data.hazard) drawCurve(Math.exp(sum));
    }

    // exp(-hazard), which keeps its value until the next step
    function drawCurve(risk) {
      const points = [];
      data.hazard.forEach((hazard, j) => {
        const y = (100 * heightOf(Math.exp(-hazard * risk))).toFixed(2);
        points.push(`${data.across[j]},${y}`);
        if (j + 1 < data.across.length) points.push(`${data.across[j + 1]},${y}`);
      });
      $("#sample-curve polyline").setAttribute("points", points.join(" "));
    }

    function pick(k, scroll = true) {
      current = Math.min(Math.max(k, 0), data.labels.length - 1);
      [...list.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === current)));
      const option = list.children[current];
      list.setAttribute("aria-activedescendant", option.id);
      if (scroll) list.scrollTop = option.offsetTop - list.clientHeight / 2;
      for (const dot of dots) dot.classList.toggle("picked", Number(dot.getAttribute(mark)) === current);
      const f = choice ? largest(current) : 0;
      if (choice) choice.value = String(f);
      show(current, f);
    }

    data.labels.forEach((label, k) => {
      const option = document.createElement("div");
      option.id = `${list.id}-${k}`;
      option.setAttribute("role", "option");
      option.append(span(label, "id"), span(brief(k), "what"));
      if (data.wrong[k]) option.append(span("✗", "cross"));
      option.setAttribute("aria-label", data.headings[k] + (data.wrong[k] ? ", wrong" : ""));
      option.addEventListener("click", () => pick(k, false));
      list.append(option);
    });

    const page = 8;
    const moves = {
      ArrowDown: () => current + 1,
      ArrowUp: () => current - 1,
      PageDown: () => current + page,
      PageUp: () => current - page,
      Home: () => 0,
      End: () => data.labels.length - 1,
    };
    list.addEventListener("keydown", (event) => {
      const move = moves[event.key];
      if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      pick(move());
    });
    if (choice) choice.addEventListener("change", () => show(current, Number(choice.value)));
    for (const dot of dots) {
      dot.addEventListener("click", () => {
        pick(Number(dot.getAttribute(mark)));
        if (dot.closest("section") !== root) heading.scrollIntoView({ block: "center" });
      });
    }
    $(".picker", root).hidden = false;
    $(".explorer", root).classList.add("with-picker");
    pick(current);
  }

  if (data.labels) explorer($("#samples"), data, "data-sample");
  if (data.why) explorer($("#why"), data.why, "data-why");
})();
