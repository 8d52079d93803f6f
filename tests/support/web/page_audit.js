/* What is wrong with how the page is seen and read out: text of little contrast, things without a name, ids that are
   there twice, what is wider than the window. */
() => {
  const found = new Set();
  const isShown = (node) => {
    const style = getComputedStyle(node), box = node.getBoundingClientRect();
    return style.visibility !== "hidden" && style.opacity !== "0" && box.width > 0 && box.height > 0 && !node.closest("dialog:not([open])");
  };
  const parts = (colour) => {
    const numbers = colour.match(/[\d.]+/g).map(Number), scale = colour.startsWith("color(") ? 255 : 1;
    return [...numbers.slice(0, 3).map((number) => number * scale), numbers[3] ?? 1];
  };
  const over = (above, below) => [...[0, 1, 2].map((at) => above[at] * above[3] + below[at] * (1 - above[3])), 1];
  const ground = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) layers.push(parts(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, above) => over(above, below), [255, 255, 255, 1]);
  };
  const light = (colour) => {
    const [red, green, blue] = colour.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement, text = texts.currentNode.textContent.trim();
    if (!text || node.closest("svg") || !isShown(node)) continue;
    const below = ground(node), pair = [light(below), light(over(parts(getComputedStyle(node).color), below))];
    const contrast = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (contrast < 4.5) found.add(`contrast ${contrast.toFixed(2)}: ${node.tagName} .${node.className} ${text.slice(0, 30)}`);
  }
  for (const node of document.querySelectorAll("a, button, input, select, textarea, svg:not([aria-hidden] *)")) {
    if (node.type === "hidden" || !isShown(node)) continue;
    const name = [node.getAttribute("aria-label"), node.textContent, node.labels?.[0]?.textContent, node.title].find((one) => one?.trim());
    if (!name) found.add(`no name: ${node.outerHTML.slice(0, 100)}`);
  }
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.add(`twice: #${id}`);
  if (document.documentElement.scrollWidth > innerWidth) found.add("the page scrolls sideways");
  return [...found];
}
