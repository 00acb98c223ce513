"use strict";
// Text of models, prompts and providers enters the page here only: as text nodes, its unseen characters as signs.
const eyas = {};
(() => {
  // The same class as UNSEEN of markup.py.
  const UNSEEN =
    /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0d\ufeff\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\u{e0000}-\u{e0fff}]/gu;

  const sign = (character) => {
    const code = character.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return code === 0x7f ? "␡" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  };

  /** Text for an attribute or a menu, where no element can stand. */
  eyas.plain = (text) => String(text).replace(UNSEEN, sign);

  /** Put text into an element; `breaks` shows where its lines end. */
  eyas.fill = (element, text, breaks = false) => {
    let place = 0;
    const put = (piece) => {
      if (!breaks) return element.append(piece);
      piece.split("\n").forEach((line, number) => {
        if (number) element.append(eyas.make("i", { class: "sign" }, "↵"), "\n");
        element.append(line);
      });
    };
    for (const found of text.matchAll(UNSEEN)) {
      put(text.slice(place, found.index));
      element.append(eyas.make("i", { class: "sign" }, sign(found[0])));
      place = found.index + found[0].length;
    }
    put(text.slice(place));
    return element;
  };

  /** An element of ours. Its strings are shown as they are. */
  eyas.make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children.filter((child) => child !== null));
    return element;
  };

  /** An element with text of others. */
  eyas.say = (name, attributes, text) => eyas.fill(eyas.make(name, attributes), String(text));

  eyas.data = (id) => JSON.parse(document.getElementById(id).textContent);
  eyas.count = (value) => Math.round(value).toLocaleString("en-US");
  eyas.dollars = (value) =>
    "$" +
    value.toLocaleString("en-US", {
      minimumFractionDigits: 2,
      maximumFractionDigits: value === 0 || Math.abs(value) >= 0.1 ? 2 : 6,
    });
  eyas.short = (value) => {
    for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]])
      if (Math.abs(value) >= size) return `${+(value / size).toPrecision(3)}\u202f${unit}`;
    return String(+value.toPrecision(3));
  };
  eyas.share = (value) => {
    const percent = Math.round(1000 * value) / 10;
    return `${(percent === 100 && value < 1 ? 99.9 : percent).toFixed(1)}\u202f%`;
  };

  /** Storage of this tab, where there is any. */
  eyas.keep = (key, value) => {
    try {
      sessionStorage.setItem(`eyas-report-${key}:${location.pathname}`, JSON.stringify(value));
    } catch {}
  };
  eyas.kept = (key) => {
    try {
      return JSON.parse(sessionStorage.getItem(`eyas-report-${key}:${location.pathname}`));
    } catch {
      return null;
    }
  };
})();
