// Finds what is wrong with the layout of the page, whatever the fonts: a list of sentences.
() => {
  const LEAST = 6; // characters a line, where a text has several lines
  const wrong = [];
  const name = (element) => `${element.tagName.toLowerCase()}.${[...element.classList].join(".")}`;
  const isShown = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !element.closest(".visually-hidden, .skip");
  if (document.documentElement.scrollWidth > innerWidth) wrong.push(`the page is ${document.documentElement.scrollWidth} wide, the window ${innerWidth}`);

  // A modal dialog lies above all else.
  const walker = document.createTreeWalker(document.querySelector("dialog:modal") ?? document.body, NodeFilter.SHOW_TEXT);
  const pieces = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.data.trim();
    const parent = node.parentElement;
    if (!text || !parent || parent.closest("script, noscript, option") || !isShown(parent)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const lines = [...range.getClientRects()].filter((rect) => rect.width > 0.5 && rect.height > 0.5);
    const places = new Set(lines.map((rect) => Math.round(rect.top)));
    if (places.size > 2 && text.length / places.size < LEAST) wrong.push(`${name(parent)} has ${places.size} lines for "${text.slice(0, 40)}"`);
    for (const rect of lines) pieces.push({ parent, text, rect: visible(rect, parent) });
  }

  // Removes what a scrolling or clipping ancestor hides.
  function visible(rect, element) {
    let { left, top, right, bottom } = rect;
    for (let one = element; one && one !== document.body; one = one.parentElement) {
      if (getComputedStyle(one).overflow === "visible") continue;
      const box = one.getBoundingClientRect();
      [left, top, right, bottom] = [Math.max(left, box.left), Math.max(top, box.top), Math.min(right, box.right), Math.min(bottom, box.bottom)];
    }
    return { left, top, right, bottom };
  }
  const sticky = (element) => element.closest(".top, .running .run-head, .running .title-row, .follow-bar");
  for (let a = 0; a < pieces.length; a++) {
    for (let b = a + 1; b < pieces.length; b++) {
      const [one, two] = [pieces[a], pieces[b]];
      if (one.parent === two.parent || sticky(one.parent) !== sticky(two.parent)) continue;
      const width = Math.min(one.rect.right, two.rect.right) - Math.max(one.rect.left, two.rect.left);
      const height = Math.min(one.rect.bottom, two.rect.bottom) - Math.max(one.rect.top, two.rect.top);
      if (width > 3 && height > 5) wrong.push(`"${one.text.slice(0, 30)}" and "${two.text.slice(0, 30)}" overlap`);
    }
  }
  for (const button of document.querySelectorAll("button, .button, select, .badge, .tag, h1")) {
    if (isShown(button) && button.scrollWidth > button.clientWidth + 1 && getComputedStyle(button).overflow === "visible" && button.clientWidth > 0) wrong.push(`${name(button)} is narrower than its text`);
  }
  return [...new Set(wrong)];
}
