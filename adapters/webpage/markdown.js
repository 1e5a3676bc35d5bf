// Markdown to DOM nodes. Never innerHTML: whatever a model writes stays text. Half-written Markdown is closed.

const SAFE = /^(https?:|mailto:)/i;

function el(name, ...children) {
  const node = document.createElement(name);
  node.append(...children);
  return node;
}

function inline(text) {
  const out = [];
  const pattern = /(`+)([\s\S]+?)\1|\*\*([\s\S]+?)\*\*|__([\s\S]+?)__|\*([^\s*][^*]*?)\*|(?<![\w])_([^\s_][^_]*?)_(?![\w])|~~([\s\S]+?)~~|\[([^\]]+)\]\(([^)\s]+)[^)]*\)|(https?:\/\/[^\s<>()]+[^\s<>().,;:!?'"])/g;
  let at = 0;
  for (const found of text.matchAll(pattern)) {
    if (found.index > at) out.push(text.slice(at, found.index));
    at = found.index + found[0].length;
    if (found[2] !== undefined) out.push(el("code", found[2].trim() || found[2]));
    else if (found[3] !== undefined || found[4] !== undefined) out.push(el("strong", ...inline(found[3] ?? found[4])));
    else if (found[5] !== undefined || found[6] !== undefined) out.push(el("em", ...inline(found[5] ?? found[6])));
    else if (found[7] !== undefined) out.push(el("del", ...inline(found[7])));
    else out.push(link(found[9] ?? found[10], found[8] ?? found[10], found[0]));
  }
  if (at < text.length) out.push(text.slice(at));
  return out;
}

function link(target, label, source) {
  if (!SAFE.test(target)) return source;
  const node = el("a", label);
  node.href = target;
  node.rel = "noopener noreferrer nofollow";
  node.target = "_blank";
  return node;
}

function lines(text) {
  const nodes = [];
  text.split("\n").forEach((line, index) => {
    if (index) nodes.push(el("br"));
    nodes.push(...inline(line));
  });
  return nodes;
}

function codeBlock(text) {
  const copy = el("button", "Copy");
  copy.type = "button";
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });
  return el("pre", el("code", text), copy);
}

const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;

function list(rows) {
  const first = ITEM.exec(rows[0]);
  const depth = first[1].length;
  const node = el(/\d/.test(first[2]) ? "ol" : "ul");
  if (node.tagName === "OL") node.start = parseInt(first[2], 10);
  for (let i = 0; i < rows.length;) {
    const found = ITEM.exec(rows[i]);
    const body = [found ? found[3] : rows[i].trim()];
    const inner = [];
    i += 1;
    while (i < rows.length) {
      const next = ITEM.exec(rows[i]);
      if (next && next[1].length <= depth) break;
      if (next || inner.length) inner.push(rows[i]); else body.push(rows[i].trim());
      i += 1;
    }
    const item = el("li", ...lines(body.join("\n")));
    if (inner.length) item.append(list(inner));
    node.append(item);
  }
  return node;
}

const cells = (row) => row.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());

function table(rows) {
  const head = el("tr", ...cells(rows[0]).map((cell) => el("th", ...inline(cell))));
  const body = rows.slice(2).map((row) => el("tr", ...cells(row).map((cell) => el("td", ...inline(cell)))));
  const box = el("div", el("table", el("thead", head), el("tbody", ...body)));
  box.className = "tablebox";
  return box;
}

export function markdown(text) {
  const rows = text.replace(/\r\n?/g, "\n").split("\n");
  const out = document.createDocumentFragment();
  for (let i = 0; i < rows.length;) {
    const row = rows[i];
    const fence = /^\s*(```+|~~~+)(.*)$/.exec(row);
    if (fence) {
      const body = [];
      i += 1;
      while (i < rows.length && !rows[i].trim().startsWith(fence[1])) body.push(rows[i++]);
      i += 1;
      out.append(codeBlock(body.join("\n")));
    } else if (!row.trim()) {
      i += 1;
    } else if (/^#{1,6}\s/.test(row)) {
      const level = Math.min(4, row.match(/^#+/)[0].length);
      out.append(el(`h${level}`, ...inline(row.replace(/^#+\s*/, "").replace(/\s#+$/, ""))));
      i += 1;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(row)) {
      out.append(el("hr"));
      i += 1;
    } else if (ITEM.test(row)) {
      const part = [];
      while (i < rows.length && (ITEM.test(rows[i]) || (/^\s+\S/.test(rows[i]) && part.length))) part.push(rows[i++]);
      out.append(list(part));
    } else if (/^\s*>/.test(row)) {
      const part = [];
      while (i < rows.length && /^\s*>/.test(rows[i])) part.push(rows[i++].replace(/^\s*> ?/, ""));
      out.append(el("blockquote", markdown(part.join("\n"))));
    } else if (row.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(rows[i + 1] ?? "")) {
      const part = [];
      while (i < rows.length && rows[i].includes("|")) part.push(rows[i++]);
      out.append(table(part));
    } else {
      const part = [];
      while (i < rows.length && rows[i].trim() && !/^\s*(```|~~~|>|#{1,6}\s)/.test(rows[i]) && !(part.length && ITEM.test(rows[i]))) part.push(rows[i++]);
      out.append(el("p", ...lines(part.join("\n"))));
    }
  }
  return out;
}
