"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const workloads = [...document.querySelectorAll("details.workload")];
  const chosen = new Set();
  let isSplit = false;

  // Everything from the data goes into the page as text, never as markup.
  const make = (tag, classes, ...children) => {
    const element = document.createElement(tag);
    if (classes) element.className = classes;
    element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return element;
  };

  const dataOf = (workload) => {
    if (!workload.data) workload.data = JSON.parse(workload.querySelector("script").textContent);
    return workload.data;
  };

  // Diffs

  const row = (sign, left, right, text, who) => {
    const side = { "+": "plus", "-": "minus" }[sign] || "";
    return make("tr", side, make("td", "n", left), make("td", "n", right), make("td", "s", sign),
      make("td", "t", who ? make("span", "who", who) : "", text || " "));
  };

  const unified = (hunk) => {
    let [old, now] = [hunk.old, hunk.new];
    return hunk.lines.map(([sign, text, who]) => {
      if (sign === "+") return row(sign, "", String(now++), text, who);
      if (sign === "-") return row(sign, String(old++), "", text, who);
      return row(sign, String(old++), String(now++), text, who);
    });
  };

  const half = (line, number, sign) => {
    const side = line ? { "+": "plus", "-": "minus" }[sign] || "" : "";
    return [make("td", `n ${side}`, line ? String(number) : ""), make("td", `t ${side}`, line ? line[1] || " " : "")];
  };

  const split = (hunk) => {
    let [old, now] = [hunk.old, hunk.new];
    const rows = [];
    let [gone, come] = [[], []];
    const flush = () => {
      for (let at = 0; at < Math.max(gone.length, come.length); at++) {
        const [left, right] = [gone[at], come[at]];
        rows.push(make("tr", "", ...half(left, left ? old++ : 0, "-"), ...half(right, right ? now++ : 0, "+")));
      }
      [gone, come] = [[], []];
    };
    for (const line of hunk.lines) {
      if (line[0] === "-") gone.push(line);
      else if (line[0] === "+") come.push(line);
      else {
        flush();
        rows.push(make("tr", "", ...half(line, old++, " "), ...half(line, now++, " ")));
      }
    }
    flush();
    return rows;
  };

  const drawHunk = (hunk) => {
    const caption = make("caption", "", `line ${hunk.old} `, make("b", "", hunk.policies.join(", ")));
    const table = make("table", "", caption, make("tbody", "", ...(isSplit ? split : unified)(hunk)));
    return make("div", isSplit ? "hunk split" : "hunk", table);
  };

  // Pods

  const mark = (key, others) => {
    if (!others) return "";
    const other = others.get(key.id);
    if (other === undefined) return "new";
    return other === key.content ? "" : "other";
  };
  const keyed = (items, id) => items.map((item) => ({ id: id(item), content: JSON.stringify(item), item }));
  const contents = (keys) => new Map(keys.map((key) => [key.id, key.content]));

  const details = {
    ports: [(port) => `${port.containerPort}/${port.protocol}`, (port) => [`:${port.containerPort}`, port.name || ""]],
    env: [(env) => env.name, (env) => [env.name, env.valueFrom ? `from ${env.valueFrom}` : `= ${env.value ?? ""}`]],
    envFrom: [(from) => from, (from) => ["all of", from]],
    volumeMounts: [(mount) => mount.mountPath, (mount) => [mount.mountPath, `${mount.name}${mount.readOnly ? ", read only" : ""}`]],
  };
  const words = { ports: "port", env: "env", envFrom: "env", volumeMounts: "mount" };

  const drawList = (container, other, isAfter, name) => {
    const [id, show] = details[name];
    const own = keyed(container[name] || [], id);
    const others = other ? contents(keyed(other[name] || [], id)) : null;
    // Before: only what there is to compare with; after: what is new or another.
    return own.filter((key) => !isAfter || !others || mark(key, others)).map((key) => {
      const [what, more] = show(key.item);
      return make("li", isAfter ? mark(key, others) : "", make("small", "", `${words[name]} `), what, " ", make("small", "", more));
    });
  };

  const drawContainer = (container, other, isAfter) => {
    const isNew = isAfter && !other;
    const isOther = isAfter && other && JSON.stringify(other) !== JSON.stringify(container);
    const items = Object.keys(details).flatMap((name) => drawList(container, isNew ? null : other, isAfter, name));
    const shown = items.slice(0, 40);
    if (items.length > shown.length) shown.push(make("li", "", `and ${items.length - shown.length} more`));
    return make("div", `box ${isNew ? "new" : isOther ? "other" : ""}`,
      isNew ? make("span", "tag", "new") : isOther ? make("span", "tag", "changed") : "",
      make("b", "", container.name), " ", make("code", "", container.image),
      shown.length && (isNew || isOther) ? make("ul", "", ...shown) : "");
  };

  const drawPod = (title, pod, other, isAfter) => {
    const box = make("div", "pod", make("h3", "", title));
    for (const [name, heading] of [["initContainers", "Init containers"], ["sidecars", "Sidecars"], ["containers", "Containers"]]) {
      if (!pod[name].length) continue;
      box.append(make("h4", "", heading));
      for (const container of pod[name]) {
        const twin = other && other[name].find((one) => one.name === container.name);
        box.append(drawContainer(container, twin, isAfter));
      }
    }
    const chips = (heading, own, others) => {
      if (!own.length) return;
      const known = contents(others);
      const all = own.map((key) => make("div", `box ${isAfter ? mark(key, known) : ""}`, key.item.text, " ", make("code", "", key.item.more)));
      box.append(make("h4", "", heading), make("div", "chips", ...all));
    };
    const volumes = (one) => keyed(one.volumes.map((volume) => ({ text: volume.name, more: volume.source })), (item) => item.text);
    const annotations = (one) => keyed(Object.entries(one.podAnnotations).map(([key, value]) => ({ text: key, more: value })), (item) => item.text);
    chips("Volumes", volumes(pod), other ? volumes(other) : []);
    chips("Pod annotations", annotations(pod), other ? annotations(other) : []);
    return box;
  };

  // Blocks

  const draw = (workload) => {
    const data = dataOf(workload);
    workload.querySelector(".drawn")?.remove();
    const drawn = make("div", "drawn");
    if (data.before && data.after) {
      drawn.append(make("div", "pods", drawPod("Pod before", data.before, data.after, false), drawPod("Pod after", data.after, data.before, true)));
    }
    data.hunks.forEach((hunk) => drawn.append(drawHunk(hunk)));
    workload.append(drawn);
    workload.isSplit = isSplit;
  };
  const ensure = (workload) => {
    if (!workload.querySelector(".drawn") || workload.isSplit !== isSplit) draw(workload);
  };
  workloads.forEach((workload) => {
    workload.policies = JSON.parse(workload.dataset.policies);
    workload.text = "";
    workload.addEventListener("toggle", () => workload.open && ensure(workload));
  });

  // Search and filters

  const textOf = (workload) => {
    if (!workload.text) {
      const own = [workload.querySelector("summary"), workload.querySelector(".deeds")].map((part) => part.textContent);
      workload.text = [...own, workload.parentElement.dataset.namespace].join(" ").toLowerCase();
    }
    return workload.text;
  };
  const filter = () => {
    const wanted = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const workload of workloads) {
      const fits = (!chosen.size || workload.policies.some((policy) => chosen.has(policy)))
        && wanted.every((word) => textOf(workload).includes(word));
      workload.hidden = !fits;
      if (fits) shown++;
    }
    for (const section of document.querySelectorAll("section")) {
      section.hidden = !section.querySelector("details.workload:not([hidden])");
    }
    byId("shown").textContent = shown === workloads.length ? "" : `${shown} of ${workloads.length} shown`;
  };
  let waiting = 0;
  byId("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 60);
  });
  document.querySelectorAll("button.policy").forEach((button) => button.addEventListener("click", () => {
    const isOn = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(isOn));
    chosen[isOn ? "add" : "delete"](button.dataset.policy);
    filter();
  }));

  // Buttons and keys

  const toggleView = () => {
    isSplit = !isSplit;
    byId("view").setAttribute("aria-pressed", String(isSplit));
    workloads.filter((workload) => workload.open).forEach(ensure);
  };
  const visible = () => workloads.filter((workload) => !workload.hidden);
  // Thousands at once would hold up the page: they are opened and drawn in slices.
  const setAll = (isOpen) => {
    const todo = visible();
    const slice = () => {
      todo.splice(0, 50).forEach((workload) => { workload.open = isOpen; });
      if (todo.length) setTimeout(slice);
    };
    slice();
  };
  const toggleTheme = () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
  };
  const help = make("dialog", "", make("dl", "",
    ...[["/", "search"], ["j k", "next, previous workload"], ["o", "open or close it"], ["e c", "open, close all"],
      ["s", "side by side"], ["t", "dark or light"], ["Esc", "clear the search"]].flatMap(([keys, what]) =>
      [make("dt", "", ...keys.split(" ").flatMap((key) => [make("kbd", "", key), " "])), make("dd", "", what)])));
  document.body.append(help);
  help.addEventListener("click", () => help.close());
  const step = (by) => {
    const all = visible();
    const at = all.findIndex((workload) => workload.contains(document.activeElement));
    const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
    next?.querySelector("summary").focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  const actions = {
    "/": () => byId("search").focus(), j: () => step(1), k: () => step(-1), e: () => setAll(true), c: () => setAll(false),
    s: toggleView, t: toggleTheme, "?": () => help.showModal(),
    o: () => { const one = document.activeElement.closest("details.workload"); if (one) one.open = !one.open; },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input")) {
      if (event.key === "Escape") {
        event.target.value = "";
        event.target.blur();
        filter();
      }
      return;
    }
    const action = actions[event.key];
    if (action && !help.open) {
      event.preventDefault();
      action();
    }
  });
  byId("view").addEventListener("click", toggleView);
  byId("open").addEventListener("click", () => setAll(true));
  byId("close").addEventListener("click", () => setAll(false));
  byId("theme").addEventListener("click", toggleTheme);
  byId("keys").addEventListener("click", actions["?"]);
  // On paper everything that is not filtered away is open.
  addEventListener("beforeprint", () => visible().forEach((workload) => { workload.open = true; ensure(workload); }));
  if (workloads.length === 1) workloads[0].open = true;
})();
