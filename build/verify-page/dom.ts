/** An element with texts and elements in it. Texts are never parsed as markup. */
export function element(name: string, ...children: readonly (string | HTMLElement)[]): HTMLElement {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

/** The element with an id. Throws if the page has none of that type. */
export function byId<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`The page has no ${id}.`);
  return found;
}
