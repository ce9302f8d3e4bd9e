"use strict";
(() => {
  // All of this refines a page that is complete without it. Nothing here makes HTML of text.
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const island = JSON.parse(document.getElementById("island").textContent);
  const words = island.words;
  let language = document.documentElement.lang.startsWith("zh") ? 1 : 0;
  const word = name => words[name][language];

  // --- languages: the other language of a text stands in its data-alt
  const swap = () => {
    language = 1 - language;
    document.documentElement.lang = language ? "zh-Hans" : "en";
    for (const each of all("[data-alt]")) {
      const other = each.dataset.alt;
      each.dataset.alt = each.textContent;
      each.textContent = other;
    }
    for (const each of all("[data-alt-label]")) {
      const name = each.hasAttribute("placeholder") ? "placeholder" : "aria-label";
      const other = each.dataset.altLabel;
      each.dataset.altLabel = each.getAttribute(name);
      each.setAttribute(name, other);
    }
    for (const each of all("button.copy")) each.textContent = word("copy");
    look();
  };

  // --- hosts: places carry ranges of numbers into the island's list
  const inRanges = (ranges, wanted) => ranges && ranges.split(",").some(range => {
    const [first, last = first] = range.split("-").map(Number);
    for (let n = first; n <= last; n++) if (wanted.has(n)) return true;
    return false;
  });
  const named = ranges => ranges.split(",").flatMap(range => {
    const [first, last = first] = range.split("-").map(Number);
    return island.hosts.slice(first, last + 1);
  });

  // --- search
  const box = document.getElementById("search");
  const said = document.getElementById("found");
  const blocks = all("[data-find]");
  const texts = new Map();
  const textOf = block => {
    if (!texts.has(block)) texts.set(block, (block.textContent + " " + block.dataset.find).toLowerCase());
    return texts.get(block);
  };
  const hostsLike = text => new Set(island.hosts.flatMap((host, n) => host.toLowerCase().includes(text) ? [n] : []));
  const fits = (block, token) => {
    const no = token.startsWith("-") && token.length > 1;
    const [, field, text] = /^-?(?:(host|check|status|layer|cause|group):)?(.*)$/.exec(token);
    let yes;
    if (field === "host") yes = inRanges(block.dataset.hosts, hostsLike(text));
    else if (field === "group") yes = inRanges(block.dataset.hosts, new Set(numbersOf(text)));
    else if (field) yes = (" " + (block.dataset[field] || "")).toLowerCase().includes(text);
    else yes = textOf(block).includes(text) || inRanges(block.dataset.hosts, hostsLike(text));
    return no ? !yes : yes;
  };
  const numbersOf = name => Object.entries(island.groups).filter(([group]) => group.toLowerCase().includes(name))
    .flatMap(([, ranges]) => ranges.split(",").flatMap(range => {
      const [first, last = first] = range.split("-").map(Number);
      return Array.from({length: last - first + 1}, (_, n) => first + n);
    }));
  const look = () => {
    const tokens = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const block of blocks) {
      const yes = tokens.every(token => fits(block, token));
      block.hidden = !yes;
      if (yes) found++;
    }
    for (const section of all("main > section")) {
      const inside = all("[data-find]", section);
      section.hidden = tokens.length > 0 && (!inside.length || inside.every(each => each.hidden));
    }
    said.textContent = !tokens.length ? "" : found ? word("match").replace("{n}", found) : word("nothing");
  };
  const search = (text, keep) => {
    box.value = text;
    look();
    if (!keep) history.replaceState(null, "", text ? "#q=" + encodeURIComponent(text) : location.pathname + location.search);
  };
  box.addEventListener("input", () => search(box.value));
  document.addEventListener("keydown", event => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && document.activeElement !== box) {
      event.preventDefault();
      box.focus();
    } else if (event.key === "Escape" && document.activeElement === box) {
      search("");
      box.blur();
    }
  });

  // --- deep links: #h=HOST, #c=CHECK, both, #q=WORDS, and every id
  const reveal = target => {
    if (!target) return;
    for (let each = target; each; each = each.parentElement) {
      if (each.tagName === "DETAILS") each.open = true;
      each.hidden = false;
    }
    target.scrollIntoView();
  };
  const go = () => {
    const hash = location.hash.slice(1);
    if (!hash) return;
    if (!hash.includes("=")) {
      reveal(document.getElementById(hash));
      return;
    }
    const asked = new URLSearchParams(hash);
    if (asked.has("q")) {
      search(asked.get("q"), true);
      return;
    }
    const host = asked.get("h"), check = asked.get("c");
    const number = host ? island.hosts.indexOf(host) : -1;
    const fit = block => (!host || inRanges(block.dataset.hosts, new Set([number]))) &&
      (!check || (block.dataset.check || "").split(" ").includes(check));
    const first = blocks.filter(fit).sort((a, b) => host ? b.classList.contains("host") - a.classList.contains("host") : 0)[0];
    if (first) reveal(first);
    else search([host, check].filter(Boolean).join(" "), true);
  };
  addEventListener("hashchange", go);

  // --- copying
  const copy = async (text, button, shown) => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = word("copied");
    } catch {
      // No clipboard over plain http: what is to be copied is marked instead.
      if (shown) getSelection().selectAllChildren(shown);
      button.textContent = word("press");
    }
    setTimeout(() => { button.textContent = button.dataset.name ? word(button.dataset.name) : word("copy"); }, 2000);
  };
  const equip = root => {
    for (const target of all("pre.command, code.hosts[data-hosts]", root)) {
      if (target.dataset.ready || target.closest("details:not([open])")) continue;
      target.dataset.ready = "1";
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = word("copy");
      button.addEventListener("click", () =>
        copy(target.dataset.hosts ? named(target.dataset.hosts).join(",") : target.textContent, button, target));
      target.after(button);
    }
  };
  document.addEventListener("toggle", event => { if (event.target.open) equip(event.target); }, true);

  // --- the map: what is under the pointer
  const map = document.querySelector("svg.map");
  const under = document.getElementById("under");
  if (map) {
    const rows = island.map.rows;
    map.addEventListener("mousemove", event => {
      const at = map.createSVGPoint();
      at.x = event.clientX;
      at.y = event.clientY;
      const {x, y} = at.matrixTransform(map.getScreenCTM().inverse());
      const row = rows.find(([top, height]) => y >= top && y < top + height);
      const column = Math.floor((x - island.map.left) / island.map.column);
      const check = x >= island.map.left ? island.map.checks[column] || "" : "";
      under.textContent = row ? [row[3] > 1 ? island.hosts[row[2]] + " … " + island.hosts[row[2] + row[3] - 1] : island.hosts[row[2]], check].filter(Boolean).join(" · ") : "";
      map.dataset.host = row && row[3] === 1 ? island.hosts[row[2]] : "";
    });
    map.addEventListener("click", () => {
      if (map.dataset.host) location.hash = "h=" + encodeURIComponent(map.dataset.host);
    });
  }

  // --- buttons, printing
  const on = (id, act) => document.getElementById(id).addEventListener("click", act);
  on("language", swap);
  on("chat", event => copy(island.chat[language] + "\n\n" + location.href, event.target, document.querySelector("h1")));
  on("open", event => {
    const open = all("main details:not([open])").length > 0;
    for (const each of all("main details.card, main details.host, main details.page")) if (!each.hidden) each.open = open;
    event.target.dataset.name = open ? "close" : "open";
    event.target.textContent = word(event.target.dataset.name);
  });
  addEventListener("beforeprint", () => { for (const each of all("main details:not(.host)")) each.open = true; });
  for (const each of all(".tools[hidden]")) each.hidden = false;
  equip(document);
  go();
})();
