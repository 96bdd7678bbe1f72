"use strict";
(() => {
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));

  // Tables and groups of pictures that can be searched. Their tools are hidden where there is no script.
  const rowsOf = (id) => all(`#${id} tbody tr, #${id} [data-row]`);
  const filter = (id) => {
    const words = (document.querySelector(`[data-filter="${id}"]`)?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const choices = all(`[data-choose="${id}"]`).filter((choice) => choice.value);
    const isChosen = (row) => choices.every((choice) => row.dataset[choice.dataset.by].split("\n").includes(choice.value));
    for (const row of rowsOf(id)) {
      const texts = () => [row.textContent, ...all("[title]", row).map((part) => part.title)].join(" ");
      row.searched ??= (row.dataset.row ?? texts()).toLowerCase();
      row.hidden = !(isChosen(row) && words.every((word) => row.searched.includes(word)));
    }
    for (const count of all("[data-count]")) {
      const rows = rowsOf(count.dataset.count);
      const shown = rows.filter((row) => !row.hidden).length;
      const things = count.dataset.of ? ` ${count.dataset.of}${rows.length === 1 ? "" : "s"}` : "";
      const number = (value) => value.toLocaleString("en");
      count.value = `${shown === rows.length ? "" : `${number(shown)} of `}${number(rows.length)}${things}`;
    }
  };
  for (const tools of all(".tools")) tools.hidden = false;
  for (const input of all("[data-filter]")) {
    input.addEventListener("input", () => filter(input.dataset.filter));
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { input.value = ""; filter(input.dataset.filter); }
    });
    filter(input.dataset.filter);
  }
  for (const choice of all("[data-choose]")) choice.addEventListener("change", () => filter(choice.dataset.choose));

  // The names in the rows that are shown, one a line. The clipboard may be out of reach of a file that was opened.
  for (const button of all("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const shown = rowsOf(button.dataset.copy).filter((row) => !row.hidden);
      const names = [...new Set(shown.map((row) => row.querySelector("[data-name]").textContent))].filter(Boolean);
      const told = button.nextElementSibling;
      try {
        await navigator.clipboard.writeText(`${names.join("\n")}\n`);
        told.value = `${names.length} copied`;
      } catch {
        told.value = "The browser does not let this page copy: mark the names in the table";
      }
    });
  }

  document.getElementById("show-drawings")?.addEventListener("change", (event) => {
    document.body.classList.toggle("no-drawings", !event.target.checked);
  });

  // Tabs, after the pattern of the ARIA authoring practices: arrows, Home and End move between them.
  for (const place of all("[data-tabs]")) {
    const panels = all(".panel", place);
    if (panels.length < 2) continue;
    place.classList.add("tabbed");
    const list = document.createElement("div");
    list.className = "tablist";
    list.setAttribute("role", "tablist");
    const tabs = panels.map((panel) => {
      const tab = document.createElement("button");
      tab.type = "button";
      tab.id = `tab-${panel.id}`;
      tab.textContent = panel.dataset.tab;
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", panel.id);
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", tab.id);
      list.append(tab);
      return tab;
    });
    const select = (chosen) => tabs.forEach((tab, place) => {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      panels[place].hidden = tab !== chosen;
    });
    list.addEventListener("click", (event) => tabs.includes(event.target) && select(event.target));
    list.addEventListener("keydown", (event) => {
      const at = tabs.indexOf(document.activeElement);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const tab = tabs[(to + tabs.length) % tabs.length];
      select(tab);
      tab.focus();
    });
    place.prepend(list);
    select(tabs[0]);
  }

  // The section that is being read, in the bar at the top.
  const links = new Map(all(".sections a").map((link) => [link.hash.slice(1), link]));
  const mark = () => {
    let here = null;
    for (const section of all("main > section")) if (section.getBoundingClientRect().top < 140) here = section.id;
    if (window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 4) here = all("main > section").at(-1).id;
    for (const [id, link] of links) {
      link.classList.toggle("here", id === here);
      if (id === here) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
  };
  document.addEventListener("scroll", mark, { passive: true });
  mark();
})();
