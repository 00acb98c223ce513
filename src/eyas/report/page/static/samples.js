"use strict";
// The browser of samples: filters, a list, one open sample. Only the open one is in the document.
(() => {
  const list = document.getElementById("list");
  const shown = document.getElementById("sample");
  if (!list) return;
  const { make, say, fill, count } = eyas;
  const samples = eyas.data("samples-data");
  const FILTERS = ["dataset", "provider", "label", "finish"];
  const CHANNELS = { reasoning: "Reasoning", content: "Answer", call: "Tool calls", other: "Other" };
  const BYTES = /(?:\\x[89a-f][0-9a-f]){2,}/g;
  const state = { dataset: "", provider: "", label: "", finish: "", id: "", view: "tokens" };
  let found = [];
  let active = 0;

  const read = () => {
    if (!location.hash.startsWith("#samples?")) return;
    const asked = new URLSearchParams(location.hash.slice(9));
    for (const key of Object.keys(state)) state[key] = asked.get(key) ?? (key === "view" ? "tokens" : "");
  };
  const write = () => {
    const told = Object.entries(state).filter(([key, value]) => value && !(key === "view" && value === "tokens"));
    const hash = `#samples?${new URLSearchParams(told)}`;
    try {
      history.replaceState(null, "", hash);
    } catch {}
  };

  const content = (value) => {
    if (typeof value === "string") return [say("div", { class: "text", dir: "auto" }, value)];
    if (value === null || value === undefined) return [];
    if (!Array.isArray(value)) return [say("div", { class: "text code" }, JSON.stringify(value, null, 2))];
    return value.flatMap((part) => content(typeof part?.text === "string" ? part.text : part));
  };
  const called = (call) => {
    const { name = "", arguments: given = "" } = call?.function ?? call ?? {};
    return say("div", { class: "text call" }, `${name}(${typeof given === "string" ? given : JSON.stringify(given)})`);
  };
  const message = (one) => {
    const { role = "", content: body, tool_calls: calls, left_out: rest, ...more } = one;
    const kind = ["user", "assistant", "tool"].includes(role) ? role : "other";
    const box = make("div", { class: `message ${kind}` }, say("h4", {}, role), ...content(body));
    if (Array.isArray(calls)) box.append(...calls.map(called));
    if (rest) box.append(make("p", { class: "none" }, role === "…" ? `${count(rest)} messages between are not in this page` : `${count(rest)} more characters are not in this page`));
    for (const [key, value] of Object.entries(more))
      if (value !== null && value !== "") box.append(say("h4", {}, key), ...content(value));
    return box;
  };

  /** For each token its channel and its mask. */
  const marks = (sample) => {
    const mask = sample.mask.flatMap((length, run) => Array(length).fill(run % 2 ? 0 : 1));
    const channel = sample.channels.flatMap(([name, length]) => Array(length).fill(name));
    return sample.tokens.map((_, i) => ({ mask: mask[i] ?? 0, channel: channel[i] ?? "other" }));
  };
  /** Runs of tokens under one head: a marker belongs to what it stands beside. */
  const blocks = (all) => {
    const made = [];
    all.forEach(({ channel }, i) => {
      const last = made.at(-1);
      const marker = channel === "marker";
      if (last && (marker || last.channel === channel || last.channel === null)) {
        last.end = i + 1;
        if (!marker) last.channel = channel;
      } else made.push({ channel: marker ? null : channel, start: i, end: i + 1 });
    });
    return made;
  };
  const whole = (text) =>
    text.replace(BYTES, (part) => {
      const bytes = Uint8Array.from(part.match(/[0-9a-f]{2}/g), (pair) => parseInt(pair, 16));
      try {
        return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
      } catch {
        return part;
      }
    });

  const asTokens = (sample, all, { start, end }) => {
    const box = make("div", { class: "tokens" });
    for (let i = start; i < end; i += 1) {
      const kind = `tok m${all[i].mask}${all[i].channel === "marker" ? " marker" : ""}`;
      box.append(fill(make("span", { class: kind, "data-token": i }), sample.tokens[i], true));
    }
    return box;
  };
  const asText = (sample, all, { channel, start, end }) => {
    const box = make("div", { class: `text plain${channel === "call" ? " code" : ""}`, dir: "auto" });
    for (let i = start; i < end; ) {
      let next = i;
      while (next < end && all[next].mask === all[i].mask) next += 1;
      box.append(say("span", { class: `m${all[i].mask}` }, whole(sample.tokens.slice(i, next).join(""))));
      i = next;
    }
    return box;
  };

  const about = (sample) => {
    const seconds = (value) => (value === null ? "–" : `${+value.toFixed(2)} s`);
    const facts = [
      ["dataset", sample.dataset], ["provider", sample.provider], ["endpoint", sample.tag], ["label", sample.label], ["finish", sample.finish],
      ["prompt", `${count(sample.prompt_tokens)} tokens`],
      ["completion", `${count(sample.completion_tokens)} tokens`],
      ["reasoning", `${count(sample.reasoning_tokens)} tokens`],
      ["supervised", `${count(sample.supervised_tokens)} tokens`],
      ["first token", seconds(sample.first_token_seconds)], ["whole", seconds(sample.seconds)],
    ];
    if (sample.usd) facts.push(["paid", eyas.dollars(sample.usd)]);
    if (sample.tools.length) facts.push(["tools", sample.tools.join(", ")]);
    return make("dl", { class: "about" }, ...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), say("dd", {}, value))));
  };

  const follow = (box, readout, sample, all) => {
    const spans = [...box.querySelectorAll(".tok")];
    let here = -1;
    const go = (i) => {
      spans[here]?.classList.remove("here");
      here = Math.max(0, Math.min(spans.length - 1, i));
      spans[here].classList.add("here");
      const { mask, channel } = all[here];
      const said = `Token ${count(here + 1)} of ${count(sample.tokens.length + sample.left_out)}, ${channel}, mask ${mask}: `;
      const text = [...sample.tokens[here]];
      readout.replaceChildren(said, say("code", {}, JSON.stringify(text.slice(0, 60).join("")) + (text.length > 60 ? "…" : "")));
    };
    box.addEventListener("mouseover", (event) => {
      const token = event.target.closest(".tok");
      if (token) go(Number(token.dataset.token));
    });
    box.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: spans.length - 1 };
      if (!(event.key in moves) || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      go(moves[event.key]);
      spans[here].scrollIntoView({ block: "nearest" });
    });
    box.addEventListener("focus", () => here < 0 && go(0));
  };

  const open = (sample, focus) => {
    state.id = sample.id;
    const all = marks(sample);
    const tokens = state.view === "tokens";
    const answer = make("div", { class: "answer", ...(tokens ? { tabindex: "0", role: "group", "aria-label": "Tokens of the answer: the arrow keys move" } : {}) });
    for (const block of blocks(all)) {
      const name = CHANNELS[block.channel ?? "other"] ?? block.channel;
      answer.append(say("h4", {}, `${name}, ${count(block.end - block.start)} tokens`), (tokens ? asTokens : asText)(sample, all, block));
    }
    if (!sample.tokens.length) answer.append(make("p", { class: "missing" }, "The ids of this answer are not known, so that it has no tokens to show."));
    if (sample.left_out) answer.append(make("p", { class: "missing" }, `${count(sample.left_out)} more tokens are not in this page. The whole answer: `, say("code", {}, `eyas show RUNDIR ${sample.id}`)));
    const readout = make("output", { class: "readout token" }, "Point at a token, or move by the arrow keys.");
    shown.replaceChildren(
      say("h3", {}, sample.id), about(sample), ...(sample.detail ? [say("p", { class: "how" }, sample.detail)] : []),
      ...sample.messages.map(message), make("div", { class: "message assistant" }, make("h4", {}, "answer"), answer), ...(tokens && sample.tokens.length ? [readout] : []),
    );
    if (tokens && sample.tokens.length) follow(answer, readout, sample, all);
    for (const item of list.children) item.setAttribute("aria-selected", String(found[item.dataset.place] === sample));
    for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", String(button.dataset.view === state.view));
    shown.parentElement.scrollTop = 0;
    if (focus) shown.focus();
  };

  const first = (sample) => {
    const last = sample.messages.findLast((one) => one.role === "user") ?? sample.messages.at(-1);
    const text = content(last?.content).map((each) => each.textContent).join(" ").trim();
    return text ? text.slice(0, 160) : sample.id;
  };
  const point = (place) => {
    active = Math.max(0, Math.min(found.length - 1, place));
    for (const item of list.children) item.classList.toggle("active", Number(item.dataset.place) === active);
    const item = list.children[active];
    if (!item) return list.removeAttribute("aria-activedescendant");
    list.setAttribute("aria-activedescendant", item.id);
    // Only the list scrolls: the page keeps its place.
    if (item.offsetTop < list.scrollTop) list.scrollTop = item.offsetTop;
    const below = item.offsetTop + item.offsetHeight - list.clientHeight;
    if (below > list.scrollTop) list.scrollTop = below;
  };
  const fits = (sample, but) => FILTERS.every((name) => name === but || !state[name] || sample[name] === state[name]);
  const choices = () => {
    for (const name of FILTERS) {
      const select = document.getElementById(`filter-${name}`);
      const counts = new Map();
      for (const sample of samples) counts.set(sample[name], (counts.get(sample[name]) ?? 0) + (fits(sample, name) ? 1 : 0));
      if (!counts.has(state[name])) state[name] = "";
      const all = make("option", { value: "" }, "all");
      const options = [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([value, number]) => {
        const option = make("option", {}, `${eyas.plain(value)} (${number})`);
        option.value = value;
        return option;
      });
      select.replaceChildren(all, ...options);
      select.value = state[name];
    }
  };
  const show = () => {
    choices();
    found = samples.filter((sample) => fits(sample));
    list.replaceChildren(
      ...found.map((sample, i) =>
        make(
          "li", { role: "option", id: `option-${i}`, "data-place": i, "aria-selected": "false" },
          say("b", {}, first(sample)),
          say("small", {}, `${sample.dataset} · ${sample.label} · ${sample.finish} · ${count(sample.completion_tokens)} tokens`),
          say("small", {}, sample.provider),
        ),
      ),
    );
    document.getElementById("found").textContent = `${count(found.length)} of ${count(samples.length)} samples`;
    const place = Math.max(0, found.findIndex((sample) => sample.id === state.id));
    point(place);
    if (found.length) open(found[place]);
    else shown.replaceChildren(make("p", { class: "missing" }, "No sample has all of these. Choose “all” in one of the filters."));
  };

  const choose = (place, focus) => {
    point(place);
    open(found[active], focus);
    write();
  };
  list.addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (item) choose(Number(item.dataset.place));
  });
  list.addEventListener("keydown", (event) => {
    const moves = { ArrowDown: active + 1, ArrowUp: active - 1, Home: 0, End: found.length - 1, PageDown: active + 10, PageUp: active - 10 };
    if (!found.length || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key in moves) point(moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") choose(active, true);
    else return;
    event.preventDefault();
  });
  for (const name of FILTERS)
    document.getElementById(`filter-${name}`).addEventListener("change", (event) => {
      state[name] = event.target.value;
      show();
      write();
    });
  document.getElementById("filter-clear").addEventListener("click", () => {
    for (const name of FILTERS) state[name] = "";
    show();
    write();
  });
  for (const button of document.querySelectorAll("[data-view]"))
    button.addEventListener("click", () => {
      state.view = button.dataset.view;
      if (found.length) open(found.find((sample) => sample.id === state.id) ?? found[0]);
      write();
    });
  addEventListener("hashchange", () => {
    if (!location.hash.startsWith("#samples?")) return;
    read();
    show();
  });
  read();
  show();
})();
